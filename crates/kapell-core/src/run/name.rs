//! Names made of a run and one of its attempts: the same ones whoever makes them, and however often.

use super::id::RunId;
use super::update::UpdateKind;
use crate::board::TaskGuid;

/// What the guids of all tasks of runs begin with, and of no others.
pub const TASK_PREFIX: &str = "kapell-run-";

/// The namespace of our names, itself drawn once.
const NAMESPACE: u128 = 0x9a1c_55d2_6f0b_4e5e_8d3a_71c6_42e8_b90f;

/// The task that does the work of an attempt: [`TASK_PREFIX`] and 32 digits. Two attempts never share one.
pub fn task_guid(run: &RunId, attempt: u32) -> TaskGuid {
    let id = uuid_v5(&format!("task {attempt} {run}"));
    TaskGuid::new(format!("{TASK_PREFIX}{id:032x}"))
}

/// Whether a task does the work of a run.
pub fn is_of_run(guid: &TaskGuid) -> bool {
    guid.as_str().starts_with(TASK_PREFIX)
}

/// The id of an update: a UUID of version 5 of run, attempt and kind.
pub fn update_id(run: &RunId, attempt: u32, kind: UpdateKind) -> u128 {
    uuid_v5(&format!("update {attempt} {} {run}", kind.name()))
}

/// RFC 9562, section 5.5.
fn uuid_v5(name: &str) -> u128 {
    let digest = sha1(&[&NAMESPACE.to_be_bytes(), name.as_bytes()].concat());
    let high = digest.iter().take(4).fold(0, |id, word| id << 32 | u128::from(*word));
    let version = high & !(0xf << 76) | 5 << 76;
    version & !(0b11 << 62) | 0b10 << 62
}

/// RFC 3174. A name needs no secrecy, and what makes two names alike is not in anybody's hands.
fn sha1(text: &[u8]) -> [u32; 5] {
    let mut message = text.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    let bits = u64::try_from(text.len()).unwrap_or(u64::MAX).wrapping_mul(8);
    message.extend(bits.to_be_bytes());
    let mut hash = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0_u32];
    for block in message.chunks_exact(64) {
        mix(&mut hash, block);
    }
    hash
}

fn mix(hash: &mut [u32; 5], block: &[u8]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let mut now = *hash;
    for (at, word) in words.iter().enumerate() {
        let [first, x, y, z, last] = now;
        let (mixed, round) = match at {
            0..20 => (x & y | !x & z, 0x5a82_7999),
            20..40 => (x ^ y ^ z, 0x6ed9_eba1),
            40..60 => (x & y | x & z | y & z, 0x8f1b_bcdc),
            _ => (x ^ y ^ z, 0xca62_c1d6_u32),
        };
        let turned = first.rotate_left(5).wrapping_add(mixed);
        let next = turned.wrapping_add(last).wrapping_add(round).wrapping_add(*word);
        now = [next, first, x.rotate_left(30), y, z];
    }
    for (sum, part) in hash.iter_mut().zip(now) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let abc = [0xa999_3e36, 0x4706_816a, 0xba3e_2571, 0x7850_c26c, 0x9cd0_d89d];
        assert_eq!(sha1(b"abc"), abc);
        let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let two_blocks = [0x8498_3e44, 0x1c3b_d26e, 0xbaae_4aa1, 0xf951_29e5, 0xe546_70f1];
        assert_eq!(sha1(long.as_bytes()), two_blocks);
        let empty = [0xda39_a3ee, 0x5e6b_4b0d, 0x3255_bfef, 0x9560_1890, 0xafd8_0709];
        assert_eq!(sha1(b""), empty);
    }

    #[test]
    fn an_update_id_is_a_uuid_of_version_5_and_differs_by_run_attempt_and_kind() {
        let run = |id: &str| RunId::parse(id).unwrap();
        let ids = [
            update_id(&run("a:1"), 0, UpdateKind::Intent),
            update_id(&run("a:1"), 0, UpdateKind::Started),
            update_id(&run("a:1"), 1, UpdateKind::Intent),
            update_id(&run("b:1"), 0, UpdateKind::Intent),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert_eq!((id >> 76 & 0xf, id >> 62 & 0b11), (5, 0b10), "{id:032x}");
            assert!(!ids[..at].contains(id));
        }
        assert_eq!(ids[0], update_id(&run("a:1"), 0, UpdateKind::Intent));
    }

    #[test]
    fn the_task_of_an_attempt_has_a_guid_of_its_own_that_a_board_takes() {
        let run = RunId::parse("a:1").unwrap();
        let guid = task_guid(&run, 0);
        assert!(guid.is_valid() && is_of_run(&guid));
        assert_eq!(guid, task_guid(&run, 0));
        assert_ne!(guid, task_guid(&run, 1));
        assert!(!is_of_run(&"kapell-ru".into()));
    }

    #[test]
    fn runs_lie_in_order_of_job_and_moment() {
        let texts = ["a:9", "a:10", "a:10-0", "a:10-ff", "a:11", "a-b:1", "aa:1", "b:0"];
        let ids: Vec<RunId> = texts.iter().map(|text| RunId::parse(text).unwrap()).collect();
        let mut sorted = ids.clone();
        sorted.reverse();
        sorted.sort();
        assert_eq!(sorted, ids);
        let (before, behind) = RunId::bounds("a");
        let within = ids.iter().filter(|id| before <= **id && **id <= behind);
        assert_eq!(within.map(RunId::as_str).collect::<Vec<_>>(), texts[..5]);
    }
}
