use kapell_backend::executor::Stream;
use kapell_node::stdio::Writer;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::Output;
use crate::logger::Style;

/// Begins to log to standard error: what we say ourselves, and what others warn of.
pub(crate) fn begin(output: Output) {
    let what = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kapell", LevelFilter::INFO)
        .with_target("kapell_node", LevelFilter::INFO);
    let layer = fmt::layer().with_writer(|| Writer(Stream::Stderr)).with_target(false);
    let registry = tracing_subscriber::registry().with(what);
    let _begun = match output {
        Output::Json => registry.with(layer.json().flatten_event(true)).try_init(),
        Output::Text => registry.with(layer.with_ansi(Style::of_stderr().colour)).try_init(),
    };
}
