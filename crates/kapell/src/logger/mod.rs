//! How a run is shown to people and programs.

mod console;
mod json;
mod stream;
pub(crate) mod style;
mod tree;

use kapell_node::flow::{ExecutionLogger, NoOpLogger};

pub(crate) use style::Style;

use crate::cli::Logger;

/// The logger that was asked for. A tree needs a terminal; elsewhere its events come as a stream.
pub(crate) fn make(logger: Logger) -> Box<dyn ExecutionLogger> {
    let style = Style::of_stdout();
    match logger {
        Logger::Tree if style::can_redraw() => Box::new(tree::TreeLogger::new(style)),
        Logger::Stream | Logger::Tree => Box::new(stream::StreamLogger::new(style)),
        Logger::Json => Box::new(json::JsonLogger),
        Logger::None => Box::new(NoOpLogger),
    }
}
