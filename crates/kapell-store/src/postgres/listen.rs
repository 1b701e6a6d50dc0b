//! One connection that hears of changes, for all watches of a store.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::AsyncMessage;

use crate::error::Error;
use crate::model::Key;
use crate::watch::{Bell, Watch};

use super::session::{Door, Raw, Wire};

/// Listens from the first watch on.
#[derive(Debug, Default)]
pub(super) struct Ear {
    line: tokio::sync::Mutex<Option<Line>>,
}

#[derive(Debug)]
struct Line {
    bells: Bells,
    _raw: Raw,
}

/// A bell for each key, by what notifications call it. None once the line is dead: with the bells
/// go the watches.
#[derive(Debug, Clone)]
struct Bells(Arc<Mutex<Option<HashMap<String, Bell>>>>);

impl Ear {
    /// Whoever has the watch hears of every change that commits from now on.
    pub(super) async fn watch(&self, door: &Door, key: &Key) -> Result<Watch, Error> {
        let heard = async {
            let mut line = self.line.lock().await;
            let name = hex(key);
            if let Some(watch) = line.as_ref().and_then(|line| line.bells.watch(&name)) {
                return Ok(watch);
            }
            let bells = line.insert(Box::pin(Line::open(door)).await?).bells.clone();
            drop(line);
            // A line that died this early has no bells left; one that nobody rings is cut too.
            Ok(bells.watch(&name).unwrap_or_else(|| Bell::new().watch()))
        };
        door.within("watch", heard).await
    }
}

impl Line {
    async fn open(door: &Door) -> Result<Self, Error> {
        let bells = Bells(Arc::new(Mutex::new(Some(HashMap::new()))));
        let ringing = bells.clone();
        let raw = door.connect(|wire| ring(wire, ringing)).await?;
        let listen = format!("LISTEN {}", door.target.schema);
        raw.client.batch_execute(&listen).await.map_err(|error| door.fault(error, "watch"))?;
        Ok(Self { bells, _raw: raw })
    }
}

impl Bells {
    fn watch(&self, name: &str) -> Option<Watch> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bells = bells.as_mut()?;
        bells.retain(|_, bell| bell.is_heard());
        Some(bells.entry(name.to_owned()).or_default().watch())
    }

    fn ring(&self, name: &str) {
        let bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bells.as_ref().and_then(|bells| bells.get(name)) {
            bell.ring();
        }
    }

    fn cut(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

async fn ring(mut wire: Wire, bells: Bells) {
    while let Some(Ok(message)) = poll_fn(|cx| wire.poll_message(cx)).await {
        if let AsyncMessage::Notification(told) = message {
            bells.ring(told.payload());
        }
    }
    bells.cut();
}

fn hex(key: &Key) -> String {
    key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
