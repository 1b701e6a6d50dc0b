//! A terminal that passes on every key, until it is as it was again.

use std::io::{self, IsTerminal as _};
use std::panic;
use std::sync::{Mutex, Once, PoisonError};

use kapell_core::exec::Size;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use terminal_size::{Height, Width};

/// As the terminal was. There is but one.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal of standard input is raw as long as this lives.
#[derive(Debug)]
pub(super) struct Raw(());

impl Raw {
    /// None where standard input is no terminal.
    pub(super) fn enter() -> io::Result<Option<Self>> {
        static HOOK: Once = Once::new();
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        // Who panics may be gone before anything is dropped.
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |about| {
                restore();
                before(about);
            }));
        });
        let was = tcgetattr(&stdin)?;
        let mut raw = was.clone();
        cfmakeraw(&mut raw);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(was);
        let entered = Self(());
        tcsetattr(&stdin, SetArg::TCSADRAIN, &raw)?;
        Ok(Some(entered))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that is gone needs nothing.
        let _gone = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &before);
    }
}

/// How large our terminal is, or as large as terminals are.
pub(super) fn size() -> Size {
    let (Width(cols), Height(rows)) =
        terminal_size::terminal_size().unwrap_or((Width(80), Height(24)));
    Size { rows, cols }
}
