//! `kapell process`: runs a workflow file.

use anyhow::{Context as _, bail};
use kapell_backend::supervisor::{self, Lifeline};
use kapell_core::flow::{Selection, decisions};
use kapell_core::journal::Story;
use kapell_core::seams::Clock as _;
use kapell_core::source::{Problem, closest};
use kapell_core::workflow::{Bound, StepIx, Unbound, Workflow};
use kapell_node::flow::{
    FileError, History, Limits, Orchestrator, Report, Stopper, digest, read_file, whole_path,
};
use kapell_node::system::SystemClock;
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Logger, Process};
use crate::config::Config;
use crate::logger::{self, Style};
use crate::problems::BadFile;
use crate::{BAD_INPUT, clusters, metrics, print, remote, say, summary, workflow};

pub(crate) fn run(args: &Process, config: &Config) -> anyhow::Result<u8> {
    // Before anything is read: the supervisor stays small, and there is one thread.
    let lifeline =
        if args.dry_run { None } else { Some(supervisor::split().context("cannot start")?) };
    let (loaded, bytes) = match read_file(&args.file) {
        Ok(read) => read,
        Err(FileError::Bad { path, problems, bytes }) => return Ok(refuse(path, problems, bytes)),
        Err(error) => return Err(error.into()),
    };
    if args.logger.unwrap_or(config.logger) != Logger::None {
        workflow::show_warnings(&args.file, &loaded.warnings, &bytes);
    }
    let history = config.history();
    let selection = select(args, &loaded.workflow)?;
    let earlier = earlier_run(args, &history)?;
    let digest = digest(&bytes);
    if let Some(story) = &earlier {
        if selection.resume && is_complete(story, &loaded.workflow) {
            say(&format!("nothing to resume: run {} succeeded\n", story.header.id));
            return Ok(0);
        }
        if story.header.digest != format!("{digest:016x}") {
            let id = &story.header.id;
            say(&format!(
                "note: {} has changed since run {id}; steps are matched by name\n",
                args.file.display()
            ));
        }
    }
    let params = match bind(args, &loaded.workflow, earlier.as_ref()) {
        Ok(params) => params,
        Err(wrong) => return Ok(refuse_params(args, &loaded.workflow, &wrong, bytes)),
    };
    if let Some(story) = &earlier
        && bind(args, &loaded.workflow, None).ok().as_ref() != Some(&params)
    {
        say(&format!("note: using the parameters of run {}\n", story.header.id));
    }
    drop(bytes);
    let workers = args.workers.or(loaded.workflow.workers).or(config.workers).unwrap_or(5);
    let past = earlier.map(Story::past);
    let mut orchestrator = Orchestrator::new(loaded)
        .workers(workers)
        .grace(config.grace)
        .output_limit(config.output_limit_mib << 20)
        .params(params);
    let Some(lifeline) = lifeline else {
        let orchestrator = orchestrator.select(selection, past.clone());
        let (workflow, fates) = (orchestrator.workflow(), orchestrator.fates());
        let decisions = decisions(workflow, &fates, past.as_ref());
        print(&summary::dry_run(workflow, &fates, &decisions));
        return Ok(0);
    };
    if let Some(path) = &args.metrics {
        metrics::check(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    orchestrator = orchestrator.select(selection, past).owning_all_children();
    orchestrator = with_places(orchestrator, args, config)?;
    if let Err(error) = orchestrator.journal_in(&history, &args.file, digest) {
        say(&format!(
            "warning: {error}; this run cannot be resumed (set --state-dir or KAPELL_STATE_DIR)\n"
        ));
    }
    let kind = args.logger.unwrap_or(config.logger);
    let report = conduct(orchestrator.logger(logger::make(kind)), lifeline)?;
    Ok(finish(args, config, kind, &history, &report))
}

/// Steps may run elsewhere: whoever is needed for that is there.
fn with_places(
    mut orchestrator: Orchestrator,
    args: &Process,
    config: &Config,
) -> anyhow::Result<Orchestrator> {
    if let Some(step) = remote::needs_cells(&orchestrator, args.on.is_some()) {
        let cells = remote::cells_for(step, args.on.as_deref(), config)?;
        orchestrator = orchestrator.cells(cells);
    }
    if let Some(clusters) = clusters::for_steps(&orchestrator, config)? {
        orchestrator = orchestrator.clusters(clusters);
    }
    Ok(orchestrator)
}

fn refuse(path: String, problems: Vec<Problem>, bytes: Vec<u8>) -> u8 {
    say(&BadFile { path, problems, bytes }.render(Style::of_stderr().colour));
    BAD_INPUT
}

/// What of the workflow is to run.
fn select(args: &Process, workflow: &Workflow) -> anyhow::Result<Selection> {
    let find = |name: &String| -> anyhow::Result<StepIx> {
        let found =
            workflow.proper_steps().find(|(_, step)| *step.name == **name).map(|(at, _)| at);
        found.with_context(|| {
            let names = workflow.proper_steps().take(2_000).map(|(_, step)| &*step.name);
            let hint = closest(name, names)
                .map(|name| format!(": did you mean `{name}`?"))
                .unwrap_or_default();
            format!("there is no step `{name}` in {}{hint}", args.file.display())
        })
    };
    Ok(Selection {
        on_cells: args.on.is_some(),
        resume: args.resume.is_some(),
        from: args.from.iter().map(find).collect::<Result<_, _>>()?,
        only: args.only.iter().map(find).collect::<Result<_, _>>()?,
    })
}

/// The run that this one builds on: the one that was named, or the last one of the file.
fn earlier_run(args: &Process, history: &History) -> anyhow::Result<Option<Story>> {
    let picks = !args.from.is_empty() || !args.only.is_empty();
    let run = match args.resume.as_deref() {
        None if picks => history.last_ended(&args.file),
        None => None,
        Some("") => Some(history.last(&args.file)?),
        Some(id) => Some(history.find(id)?),
    };
    let Some(run) = run else { return Ok(None) };
    if run.is_running() {
        bail!("run {} is still running: wait for it or stop it first", run.id);
    }
    let story = run
        .story()
        .with_context(|| "choose another run with --resume=RUN, or run without --resume")?;
    let file = whole_path(&args.file).display().to_string();
    if story.header.file != file {
        bail!("run {} is one of `{}`, not of `{file}`", run.id, story.header.file);
    }
    Ok(Some(story))
}

fn is_complete(story: &Story, workflow: &Workflow) -> bool {
    use kapell_core::flow::State;
    let done = |name: &str| {
        story.nodes.get(name).is_some_and(|node| {
            matches!(node.state, State::Succeeded | State::Kept | State::Skipped)
        })
    };
    let ended_well = story.end.as_ref().is_some_and(|end| end.verdict == "succeeded");
    ended_well && workflow.proper_steps().all(|(_, step)| done(&step.name))
}

/// Parameters: what was given now, else what the earlier run had, else the file's defaults.
fn bind(
    args: &Process,
    workflow: &Workflow,
    earlier: Option<&Story>,
) -> Result<Bound, Vec<Unbound>> {
    let before = earlier.map(|story| story.header.params.clone()).unwrap_or_default();
    let positional = if args.params.is_empty() { &before.positional } else { &args.params };
    let declared = |name: &str| workflow.params.named.iter().any(|(other, _)| other == name);
    let named: Vec<_> = before
        .named
        .into_iter()
        .filter(|(name, _)| declared(name))
        .chain(args.param.iter().cloned())
        .collect();
    workflow.params.bind(positional, &named)
}

/// A parameter without a value is shown where the file declares it; one that the file does not
/// declare stands nowhere in it.
fn refuse_params(args: &Process, workflow: &Workflow, wrong: &[Unbound], bytes: Vec<u8>) -> u8 {
    let mut problems = Vec::new();
    for wrong in wrong {
        let text = wrong.to_string();
        let at = match wrong {
            Unbound::Missing { name } => {
                workflow.params.named.iter().position(|(declared, _)| declared == name)
            }
            Unbound::Unknown { .. } => None,
        };
        let span = at.and_then(|at| workflow.params.spans.get(at)).copied();
        match (span, text.split_once(": ")) {
            (Some(span), Some((what, help))) => {
                problems.push(Problem::error(span, what).help(help));
            }
            (Some(_) | None, _) => say(&format!("error: {text}\n")),
        }
    }
    refuse(args.file.display().to_string(), problems, bytes)
}

/// Runs the workflow while watching for signals and for the end of the supervisor.
fn conduct(orchestrator: Orchestrator, lifeline: Lifeline) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let stopper = orchestrator.stopper();
        tokio::select! {
            biased;
            // Before the first step starts: a signal must not find us deaf.
            failed = watch(stopper, lifeline) => Err(failed),
            report = orchestrator.run() => Ok(report),
        }
    })
}

/// Hands signals on. The first asks the steps to end, the second ends them.
async fn watch(stopper: Stopper, lifeline: Lifeline) -> anyhow::Error {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let listen =
        |kind: SignalKind| lifeline.heeds(kind.as_raw_value()).then(|| signal(kind)).transpose();
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(listen) else {
        return anyhow::anyhow!("cannot listen for signals");
    };
    let line = tokio::net::unix::pipe::Receiver::from_owned_fd(lifeline.into_fd());
    let Ok(mut line) = line else { return anyhow::anyhow!("cannot listen to the supervisor") };
    let mut first: Option<tokio::time::Instant> = None;
    loop {
        let signal = tokio::select! {
            biased;
            byte = line.read_u8() => match byte {
                Ok(byte) => i32::from(byte),
                Err(_) => {
                    // The supervisor was killed: nobody would end the steps if we were killed too.
                    supervisor::kill_descendants();
                    supervisor::show_cursor();
                    std::process::exit(128 + 9);
                }
            },
            () = heard(interrupt.as_mut()) => SignalKind::interrupt().as_raw_value(),
            () = heard(terminate.as_mut()) => SignalKind::terminate().as_raw_value(),
            () = heard(hangup.as_mut()) => SignalKind::hangup().as_raw_value(),
        };
        match first {
            None => {
                first = Some(tokio::time::Instant::now());
                stopper.stop(signal);
            }
            Some(first) if first.elapsed() < supervisor::SAME_WISH => {}
            Some(_) => stopper.kill(),
        }
    }
}

/// The next signal of a kind, never if that kind is not heeded.
async fn heard(signal: Option<&mut tokio::signal::unix::Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// What is left to do when all steps have ended.
fn finish(args: &Process, config: &Config, kind: Logger, history: &History, report: &Report) -> u8 {
    for problem in &report.problems {
        say(&format!("warning: {problem}\n"));
    }
    if kind != Logger::None {
        say(&summary::of(report, &config.flags, &args.file, Style::of_stderr()));
    }
    if let Some(path) = &args.metrics
        && let Err(error) = metrics::write(path, report)
    {
        say(&format!("warning: cannot write `{}`: {error}\n", path.display()));
    }
    let limits = Limits { runs: config.history_runs, age: config.history_age };
    history.prune(&args.file, limits, SystemClock.wall());
    report.verdict.exit_code()
}
