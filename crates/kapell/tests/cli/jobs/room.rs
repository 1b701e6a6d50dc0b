//! Whether cells have room is asked of real ones.

use serde_json::json;

use crate::platform::site::Site;

#[test]
fn a_run_goes_by_what_a_real_cell_says_of_its_room() {
    let site = Site::up();
    site.until("a cell", || (!site.get("/v1/cells").as_array()?.is_empty()).then_some(()));
    for (memory_mb, state, says) in [
        (1, "Completed", "1 of 1 cells have room for"),
        (1_000_000_000, "Failed", "0 of 1 cells have room for"),
    ] {
        let needs = json!({"resource_available": {"config": {"memory_mb": memory_mb}}});
        let job = json!({"job_id": "roomy", "command": "true", "constraints": [needs]});
        let applied = site.ask("POST", "/v1/jobs", Some(&job));
        assert!(matches!(applied.status, 200 | 201), "{}", applied.body);
        let run = site.ask("POST", "/v1/jobs/roomy/trigger", Some(&json!({}))).expect(201).json();
        let path = format!("/v1/runs/{}", run["run_id"].as_str().expect("an id"));
        let run = site.until("its end", || {
            let run = site.get(&path);
            run.get("completed_at").is_some().then_some(run)
        });
        assert_eq!(run["state"], state, "{run}");
        let told =
            run["timeline"].as_array().expect("a timeline").iter().any(|entry| {
                entry["message"].as_str().is_some_and(|message| message.contains(says))
            });
        assert!(told, "{run}");
    }
}
