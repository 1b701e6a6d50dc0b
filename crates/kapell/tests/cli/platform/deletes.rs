//! What was deleted or scaled down goes, whatever happens meanwhile.

use nix::sys::signal::Signal;
use serde_json::json;

use super::Site;
use super::fleet::Fleet;
use super::life::STAYS;
use crate::bench::eventually;
use crate::leadership::cluster::Kind;

#[test]
fn a_delete_that_was_acknowledged_is_carried_out_by_the_next_leader() {
    let mut site = Site::up();
    for guid in ["one", "two", "three"] {
        site.desire(guid, 8, STAYS);
        site.all_run(guid, 8);
    }
    for guid in ["one", "two"] {
        site.ask("DELETE", &format!("/v1/desired-lrps/{guid}"), None).expect(204);
    }
    site.ask("PATCH", "/v1/desired-lrps/three", Some(&json!({"instances": 2}))).expect(200);
    site.kill();
    site.start(&[]);
    site.until("what was given up to be gone", || {
        let left = site.instances("one").len() + site.instances("two").len();
        (left == 0 && site.instances("three").len() == 2 && site.work().len() == 2).then_some(())
    });
}

#[test]
fn a_delete_while_the_agent_is_away_is_carried_out_when_it_is_back() {
    let mut fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    fleet.ask("POST", "/v1/desired-lrps", Some(&fleet.lrp("web", 4, STAYS))).expect(201);
    fleet.all_run("web", 4);
    let agent = fleet.cells[0].running.take().expect("it runs");
    agent.signal(Signal::SIGTERM);
    agent.finish().expect(0);
    assert_eq!(fleet.work().len(), 4, "work goes on without its agent");
    fleet.ask("DELETE", "/v1/desired-lrps/web", None).expect(204);
    fleet.ask("GET", "/v1/desired-lrps/web", None).expect(404);
    fleet.start_cell(0);
    eventually("all to be stopped", || fleet.work().is_empty().then_some(()));
}

#[test]
fn what_is_desired_anew_runs_as_it_is_now_desired() {
    let site = Site::up();
    // It takes its time to stop, so that the new one is desired meanwhile.
    let slow = "trap 'sleep 0.5; exit 0' TERM; echo old; while :; do sleep 0.05; done";
    site.desire("web", 2, slow);
    let old = site.all_run("web", 2);
    site.ask("DELETE", "/v1/desired-lrps/web", None).expect(204);
    site.desire("web", 2, "echo new; exec sleep 1000");
    site.until("the new ones", || {
        let now = site.instances("web");
        let is_new = |lrp: &serde_json::Value| {
            lrp["state"] == "RUNNING"
                && old.iter().all(|it| it["instance_guid"] != lrp["instance_guid"])
        };
        (now.len() == 2 && now.iter().all(is_new)).then_some(())
    });
    site.until("the output of the new one", || {
        let log = site.kapell(&["logs", "--tail", "1", "web/1"]);
        (log.stdout == "new\n").then_some(())
    });
    site.until("only two processes", || (site.work().len() == 2).then_some(()));
}
