//! A process that is killed while it writes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::*;

const CHILD: &str = "KAPELL_TEST_STORE_CHILD";
const SIZES: Sizes = Sizes { segment: 16 << 10, compact_above: 96 << 10 };
const WRITERS: u16 = 8;
const ROUNDS: u64 = 6;

fn open_here(dir: &Path) -> FileStore {
    FileStore::open_with(dir, &holder(), &how(true), SIZES, |_| ()).unwrap()
}

/// Does nothing unless it is started by the test below: then it commits until it is killed,
/// and says what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_commits_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let store = Arc::new(open_here(Path::new(&dir)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..WRITERS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut fence = store.fence(shard(number)).await.unwrap();
            loop {
                assert_eq!(commit(&store, number, fence.seq).await.unwrap(), Commit::Done);
                fence = fence.next();
                // Nothing in front of the line: the harness may have begun one.
                let line = format!("\nacknowledged {number} {}\n", fence.seq);
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        });
    }
    tasks.join_next().await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_here(dir.path());
    raise(&store).await;
    drop(store);
    let mut acknowledged = [0; WRITERS as usize];
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "file::tests::kill::a_child_that_commits_until_it_is_killed"])
            .args(["--nocapture", "--test-threads", "1"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines {
            // The last line may be cut: then it was not said.
            let line = line.unwrap_or_default();
            let words: Vec<_> = line.split(' ').collect();
            let ["acknowledged", number, seq] = words[..] else { continue };
            let (Ok(number), Ok(seq)) = (number.parse::<usize>(), seq.parse::<u64>()) else {
                continue;
            };
            acknowledged[number] = seq.max(acknowledged[number]);
            seen += 1;
            if seen == 200 + 150 * round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 200 + 150 * round, "the child died too early: {seen}");
        let store = open_here(dir.path());
        for (number, seq) in (0..).zip(&acknowledged) {
            let fence = store.fence(shard(number)).await.unwrap();
            // A cut line reads as a smaller number, never as a larger one.
            assert!(fence.seq >= *seq, "shard {number}: {} < {seq}", fence.seq);
            let page = store.scan(shard(number), None).await.unwrap();
            let again = page.items.iter().find(|item| item.key == Key::new(*b"again")).unwrap();
            assert_eq!(again.value, (fence.seq - 1).to_string().into_bytes());
            assert_eq!(page.items.len() as u64, 1 + fence.seq.min(5));
        }
    }
}
