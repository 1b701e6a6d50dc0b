use crate::run::{IllegalStep, RunState};

/// Copied by hand from the specification's map of allowed transitions, in its order.
const MAP: &str = "
    PreRun            Pending Cancelled
    Pending           ConditionPending ContainerCreating Cancelled Failed
    ConditionPending  ConditionRunning Cancelled Failed
    ConditionRunning  ActionPending ContainerCreating Cancelled Failed
    ActionPending     ActionRunning Cancelled Failed
    ActionRunning     ContainerCreating Completed Cancelled Failed
    ContainerCreating Running Cancelled Failed
    Running           Terminating Cancelled Failed
    Terminating       Completed Failed Retrying Cancelled
    Retrying          Pending Failed Cancelled
    Completed
    Failed
    Cancelled
    Orphaned
";

/// The steps that its prose demands besides, as ruled; any state but a final one may also become Orphaned.
const RULED: &str = "
    ConditionRunning  Retrying
    ActionRunning     Retrying
    ContainerCreating Terminating
";

const FINAL: [&str; 4] = ["Completed", "Failed", "Cancelled", "Orphaned"];

fn has(table: &str, from: &str, to: &str) -> bool {
    table.trim().lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[0] == from && words[1..].contains(&to)
    })
}

#[test]
fn every_pair_of_states_is_as_the_specification_and_the_rulings_have_it() {
    let states: Vec<&str> =
        MAP.trim().lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(states, RunState::ALL.map(RunState::name));
    let mut wrong = Vec::new();
    for from in RunState::ALL {
        for to in RunState::ALL {
            let orphaned = to.name() == "Orphaned" && !FINAL.contains(&from.name());
            let want =
                orphaned || has(MAP, from.name(), to.name()) || has(RULED, from.name(), to.name());
            if from.next().contains(&to) != want {
                wrong.push(format!("{} -> {}: want {want}", from.name(), to.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pairs differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_has_ended_has_no_next_state_and_everything_else_has() {
    for state in RunState::ALL {
        assert_eq!(state.is_final(), FINAL.contains(&state.name()), "{}", state.name());
        assert!(!state.is_final() || state.is_stored());
        assert!(!state.meaning().is_empty());
    }
}

#[test]
fn a_step_that_may_not_be_taken_is_named() {
    let illegal = IllegalStep { from: RunState::Failed, to: RunState::Retrying };
    assert_eq!(illegal.to_string(), "invalid state transition: Failed -> Retrying");
}

#[test]
fn states_are_written_by_the_names_of_the_specification() {
    for state in RunState::ALL {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(text, format!("\"{}\"", state.name()));
        assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), state);
    }
}
