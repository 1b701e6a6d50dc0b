//! Whole runs with a pretended executor under paused time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_backend::executor::{
    Control, Ended, Error, Executor, Exit, Job, Output, Started, Stream,
};
use kapell_core::flow::{Kind, State, Verdict};
use kapell_core::seams::{Clock, Moment, Timestamp};
use kapell_core::workflow::{Workflow, load};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{ExecutionLogger, NodeEvent, NodeSnapshot, Orchestrator, Report, WorkflowEvent};
use crate::system::SystemIds;

/// Tokio's clock, which tests can pause.
#[derive(Debug)]
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Moment {
        Moment::from_origin(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp(i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// Every command takes one second, writes its own text and exits with what follows `exit `.
#[derive(Debug, Default)]
struct Pretended {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Stop(Notify);

impl Control for Stop {
    fn signal(&self, _hard: bool) {
        self.0.notify_one();
    }
}

impl Executor for Pretended {
    fn start(&self, job: &Job, output: Arc<dyn Output>) -> Result<Started, Error> {
        let text = job
            .args
            .iter()
            .map(|arg| arg.to_string_lossy())
            .collect::<Vec<Cow<'_, str>>>()
            .join(" ");
        let code = text.split_once("exit ").map_or(0, |(_, code)| code.trim().parse().unwrap_or(1));
        let now = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let running = Arc::clone(&self.running);
        let stop = Arc::new(Stop::default());
        let told = Arc::clone(&stop);
        let ended = async move {
            let exit = tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(1)) => Exit::Code(code),
                () = told.0.notified() => Exit::Signal(15),
            };
            output.take(Stream::Stdout, text.as_bytes());
            running.fetch_sub(1, Ordering::Relaxed);
            Ok(Ended { exit, lingering: None })
        };
        Ok(Started { control: stop, ended: Box::pin(ended), settle: None })
    }
}

/// Collects what a logger is told.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<(Vec<String>, usize)>>);

impl ExecutionLogger for Heard {
    fn on_workflow_start(&mut self, event: &WorkflowEvent<'_>) {
        self.0.lock().unwrap().0.push(event.kind.name().to_owned());
    }
    fn on_workflow_complete(&mut self, event: &WorkflowEvent<'_>) {
        self.0.lock().unwrap().0.push(event.kind.name().to_owned());
    }
    fn on_node_event(&mut self, event: &NodeEvent<'_>) {
        self.0.lock().unwrap().0.push(format!("{} {}", event.kind.name(), event.node));
    }
    fn on_status_update(&mut self, _states: &[NodeSnapshot], _dag: &Workflow) {
        self.0.lock().unwrap().1 += 1;
    }
    fn close(&mut self) {
        self.0.lock().unwrap().0.push("closed".to_owned());
    }
}

async fn run(text: &str, workers: u32) -> (Report, Vec<String>, usize, usize) {
    let executor = Pretended::default();
    let most = Arc::clone(&executor.most);
    let heard = Heard::default();
    let report = Orchestrator::new(load(text.as_bytes(), "test").unwrap())
        .workers(workers)
        .logger(Box::new(heard.clone()))
        .executor(Arc::new(executor))
        .seams(Arc::new(PausedClock(Instant::now())), Arc::new(SystemIds))
        .run()
        .await;
    let (events, updates) = heard.0.lock().unwrap().clone();
    (report, events, updates, most.load(Ordering::Relaxed))
}

fn steps(edges: &[(usize, &[usize])]) -> String {
    let line = |(step, parents): &(usize, &[usize])| {
        let parents: Vec<_> = parents.iter().map(|parent| format!("s{parent}")).collect();
        format!(
            "  - {{name: s{step}, command: \"work && done\", depends: [{}]}}\n",
            parents.join(", ")
        )
    };
    format!("steps:\n{}", edges.iter().map(line).collect::<String>())
}

/// RULINGS 25: chain 4T, parallel T, diamond 3T, 1 → 10 → 100 with ten workers 12T.
#[tokio::test(start_paused = true)]
async fn makespans_are_those_of_the_specification() {
    let mut tree: Vec<(usize, Vec<usize>)> = vec![(0, vec![])];
    tree.extend((1..=10).map(|step| (step, vec![0])));
    tree.extend((11..=110).map(|step| (step, vec![1 + (step - 11) / 10])));
    let tree: Vec<(usize, &[usize])> =
        tree.iter().map(|(step, parents)| (*step, parents.as_slice())).collect();
    let cases: [(&str, String, u64); 4] = [
        ("chain", steps(&[(0, &[]), (1, &[0]), (2, &[1]), (3, &[2])]), 4),
        ("parallel", steps(&[(0, &[]), (1, &[]), (2, &[]), (3, &[])]), 1),
        ("diamond", steps(&[(0, &[]), (1, &[0]), (2, &[0]), (3, &[1, 2])]), 3),
        ("tree", steps(&tree), 12),
    ];
    for (name, text, seconds) in cases {
        let (report, _, _, most) = run(&text, 10).await;
        assert_eq!(report.verdict, Verdict::Succeeded, "{name}");
        assert_eq!(report.duration, Duration::from_secs(seconds), "{name}");
        assert!(most <= 10, "{name}: {most} at once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_logger_hears_everything_in_order_and_updates_every_100_ms() {
    let (report, events, updates, _) = run(&steps(&[(0, &[]), (1, &[0])]), 5).await;
    assert_eq!(report.verdict.exit_code(), 0);
    assert_eq!(
        events,
        [
            "workflow_started",
            "node_started s0",
            "node_completed s0",
            "node_started s1",
            "node_completed s1",
            "workflow_completed",
            "closed",
        ]
    );
    assert!((20..=23).contains(&updates), "two seconds, a last one at the end: {updates}");
}

#[tokio::test(start_paused = true)]
async fn outputs_reach_the_steps_that_follow() {
    let text = r#"
steps:
  - {name: a, command: "one && two", output: A}
  - {name: b, command: x, args: ["$A", "${a.k}"], depends: a}
  - {name: c, command: "x && y", output: C, depends: b}
"#;
    let (report, events, ..) = run(text, 5).await;
    assert_eq!(
        report.verdict,
        Verdict::Failed(load(text.as_bytes(), "x").unwrap().workflow.find("b"))
    );
    assert!(
        events.contains(&format!("{} b", Kind::NodeFailed.name())),
        "what `a` wrote is not JSON: {events:?}"
    );
    assert!(report.failures[0].error.contains("is not JSON"), "{:?}", report.failures);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_reports_what_was_cancelled() {
    let text = "
steps:
  - {name: bad, command: 'x && exit 3'}
  - {name: long, command: 'x && y', retry_policy: {limit: 9, delay: 10s}}
  - {name: never, command: 'x && y', depends: bad}
";
    let (report, ..) = run(text, 5).await;
    let states: BTreeMap<_, _> =
        report.steps.iter().map(|step| (step.name.as_str(), step.state)).collect();
    assert_eq!(states["bad"], State::Failed);
    assert_eq!(states["never"], State::Cancelled);
    assert_eq!(report.failures[0].error, "exit status 3");
    assert!(
        report.failures[0].tail.contains("exit 3"),
        "the end of its output: {:?}",
        report.failures[0]
    );
}

/// `cargo test` builds the examples next to the tests.
#[test]
fn the_example_logger_runs() {
    let here = std::env::current_exe().unwrap();
    let example = here.ancestors().nth(2).unwrap().join("examples/custom_logger");
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.yaml");
    let output = std::process::Command::new(example).arg(file).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    for line in [
        "hello begins with 3 steps",
        "  node_completed report",
        "hello is over, 3 steps succeeded",
        "closed",
    ] {
        assert!(stdout.lines().any(|it| it == line), "no `{line}` in\n{stdout}");
    }
}
