//! Writes data the way it was asked for, once or whenever it changes.

use std::io::IsTerminal as _;
use std::time::Duration;

use kapell_api::client::{Client, Error};
use serde::Serialize;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::args::{Listing, Output};
use super::follower::Follower;
use super::table::{Table, cut};
use super::yaml;
use crate::logger::Style;
use crate::logger::style::can_redraw;
use crate::{print, say};

/// Events come in bursts; one look at their end is enough.
const BURST: Duration = Duration::from_millis(150);
/// So that ages stay true on a terminal.
const AGES: Duration = Duration::from_secs(2);
/// Between two tries to reach a host that is gone.
const AWAY: Duration = Duration::from_secs(1);

/// Something to show, for people and for programs.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) text: Text,
    pub(crate) value: Value,
    /// The last event that it includes.
    pub(crate) event_id: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Text {
    Table(Table),
    /// Lines, and a table below them.
    Page(String, Table),
}

impl View {
    fn render(&self, output: Output, width: Option<usize>) -> String {
        match output {
            Output::Text => {
                let style = Style::of_stdout();
                match &self.text {
                    Text::Table(table) => table.render(width, style),
                    Text::Page(page, table) => {
                        let width_of_lines = width.unwrap_or(usize::MAX);
                        let lines = page.lines().map(|line| cut(line, width_of_lines) + "\n");
                        lines.collect::<String>() + &table.render(width, style)
                    }
                }
            }
            Output::Json | Output::Yaml => data(&self.value, output),
        }
    }
}

/// A value for programs.
pub(crate) fn data(value: &Value, output: Output) -> String {
    match output {
        Output::Yaml => yaml::emit(value),
        Output::Text | Output::Json => format!("{value:#}\n"),
    }
}

pub(crate) fn to_value(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}

/// The size of the terminal that standard output is, if it is one.
pub(crate) fn terminal() -> Option<(usize, usize)> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (width, height) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some((usize::from(width.0), usize::from(height.0)))
}

/// Shows what `fetch` gives, and with `--watch` again and again.
pub(crate) async fn list(
    client: &Client,
    how: Listing,
    fetch: impl AsyncFn(&Client) -> Result<View, Error>,
) -> anyhow::Result<u8> {
    let view = fetch(client).await?;
    let width = terminal().map(|(width, _)| width);
    if !how.watch {
        print(&view.render(how.show.output, width));
        return Ok(0);
    }
    let mut screen = Screen::new(how.show.output);
    screen.draw(&view);
    let mut follower = Follower::new(client, view.event_id);
    loop {
        let wait = async {
            let event = follower.next().await?;
            while let Ok(more) = timeout(BURST, follower.next()).await {
                more?;
            }
            Ok::<_, Error>(event)
        };
        if screen.in_place {
            // A terminal is drawn again anyway, for the ages.
            if let Ok(happened) = timeout(AGES, wait).await {
                happened?;
            }
        } else {
            wait.await?;
        }
        match fetch(client).await {
            Ok(view) => screen.draw(&view),
            Err(error) if error.passes() => {
                screen.note(&error.to_string());
                sleep(AWAY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Where a list is shown again and again.
struct Screen {
    output: Output,
    in_place: bool,
    /// How many lines were drawn.
    drawn: usize,
    last: Option<Value>,
}

impl Screen {
    fn new(output: Output) -> Self {
        Self { output, in_place: output == Output::Text && can_redraw(), drawn: 0, last: None }
    }

    fn draw(&mut self, view: &View) {
        let size = terminal();
        let text = view.render(self.output, size.map(|(width, _)| width));
        if self.in_place {
            self.replace(&text, size.unwrap_or((80, 24)));
            return;
        }
        // Only what changed, whatever the time is.
        if self.last.as_ref() == Some(&view.value) {
            return;
        }
        let between = if self.last.is_none() || self.output == Output::Json { "" } else { "\n" };
        let between = match self.output {
            Output::Yaml => "---\n",
            Output::Text | Output::Json => between,
        };
        print(&format!("{between}{text}"));
        self.last = Some(view.value.clone());
    }

    fn note(&mut self, text: &str) {
        if self.in_place {
            let size = terminal().unwrap_or((80, 24));
            self.replace(&cut(text, size.0), size);
        } else {
            say(&format!("{text}\n"));
        }
    }

    fn replace(&mut self, text: &str, (width, height): (usize, usize)) {
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        let mut lines: Vec<&str> = text.lines().collect();
        let all = lines.len();
        let room = height.saturating_sub(1).max(1);
        let more = if all > room {
            lines.truncate(room.saturating_sub(1));
            Some(cut(&format!("… and {} more lines", all - lines.len()), width))
        } else {
            None
        };
        self.drawn = lines.len() + usize::from(more.is_some());
        let lines: String =
            lines.into_iter().map(str::to_owned).chain(more).map(|line| line + "\n").collect();
        // As one frame: nobody sees half of it.
        print(&format!("\x1b[?2026h{up}\r\x1b[J{lines}\x1b[?2026l"));
    }
}
