//! Figures of kapell alone: memory, validation, start-up.

use std::fs::{self, File};
use std::io::BufWriter;

use super::files::{Files, WORKFLOW, tangle};
use super::lab::{Lab, Runner};
use super::mode::Mode;
use super::row::{Goal, Row};
use super::shape::{Shape, grouped};
use crate::error::{Result, failed};

const PEAK: Goal = Goal::AtMost(15.0);
const VALIDATE: Goal = Goal::Below(1.0);
const START_UP: Goal = Goal::AtMost(3.0);

pub(crate) fn memory(lab: &Lab, steps: usize) -> Result<Vec<Row>> {
    eprintln!("peak memory, {} steps", grouped(steps));
    let files = Files::write(lab.scratch.path(), Shape::independent(steps), Mode::Plain)?;
    let peak = lab.peak(&files)?;
    let row = |what: &str, kb: u32| {
        let name = format!("{} independent: {what}", grouped(steps));
        Row::new(name, [f64::from(kb) * 1024.0 / 1e6]).unit("MB")
    };
    Ok(vec![
        row("peak memory of kapell's processes", peak.own_kb).goal(PEAK),
        row("largest process", peak.largest_kb),
    ])
}

pub(crate) fn validate(lab: &Lab, steps: usize, rounds: usize) -> Result<Row> {
    let dir = lab.scratch.path().join("tangle");
    fs::create_dir(&dir)?;
    let mut file = BufWriter::new(File::create(dir.join(WORKFLOW))?);
    let edges = tangle(&mut file, steps)?;
    file.into_inner().map_err(|error| failed(error.to_string()))?;
    let mut walls = Vec::new();
    for round in 1..=rounds {
        eprintln!("validate, round {round} of {rounds}");
        walls.push(lab.validate(&dir)?.wall);
    }
    let name = format!("validate {} steps, {} edges", grouped(steps), grouped(edges));
    Ok(Row::new(name, walls).unit("s").goal(VALIDATE))
}

pub(crate) fn start_up(lab: &Lab, rounds: usize) -> Result<Row> {
    eprintln!("start-up, {rounds} rounds");
    let files = Files::write(lab.scratch.path(), Shape::independent(1), Mode::Plain)?;
    let mut differences = Vec::new();
    for _ in 0..rounds {
        let floor = lab.run(Runner::Floor, &files)?.wall;
        let kapell = lab.run(Runner::Kapell, &files)?.wall;
        differences.push((kapell - floor) * 1000.0);
    }
    let name = "start-up: one step, kapell - floor".to_owned();
    Ok(Row::new(name, differences).unit("ms").goal(START_UP))
}
