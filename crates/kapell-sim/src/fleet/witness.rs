//! Hears what cells log about rows of their tables that cannot be.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest, Subscriber};
use tracing::{Dispatch, Event, Level, Metadata};

/// Where such rows are logged.
const TARGET: &str = "kapell_node::cell::rep";
const MESSAGE: &str = "inconceivable";

/// What was heard on this thread since it was last asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Vec<String>>>);

impl Witness {
    /// Hears this thread for as long as the guard is there.
    pub(super) fn listen(&self) -> DefaultGuard {
        tracing::dispatcher::set_default(&Dispatch::new(self.clone()))
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn matters(metadata: &Metadata<'_>) -> bool {
    *metadata.level() == Level::WARN && metadata.target() == TARGET
}

impl Subscriber for Witness {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if matters(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        matters(metadata)
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        if words.message == MESSAGE {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(words.fields);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Debug, Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields.push_str(&format!(" {field}={value:?}"));
        }
    }
}
