//! The shape of everything that is sent.

use serde_json::{Map, Value, json};

pub(super) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    for group in [
        common(),
        actions(),
        desired(),
        instances(),
        tasks(),
        cells(),
        reports(),
        plans(),
        tokens(),
        secrets(),
        audit(),
    ]
    .into_iter()
    .chain(super::jobs::all())
    .chain([super::constraints::all()])
    {
        if let Value::Object(group) = group {
            all.extend(group);
        }
    }
    all
}

pub(super) fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn list(item: &Value) -> Value {
    json!({ "type": "array", "items": item })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn port() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 65535 })
}

pub(super) fn flag() -> Value {
    json!({ "type": "boolean" })
}

/// An object with these fields, the first `required` of which are always there.
pub(super) fn object(required: usize, fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().take(required).map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

/// The same, and a request with any other field is refused.
pub(super) fn strict(required: usize, fields: &[(&str, Value)]) -> Value {
    let mut schema = object(required, fields);
    schema["additionalProperties"] = false.into();
    schema
}

fn common() -> Value {
    json!({
        "Problem": object(3, &[("code", text()), ("message", text()), ("details", json!({ "type": "object" }))]),
        "Id": { "type": "string", "pattern": "^[a-zA-Z0-9_-]+$", "minLength": 1, "maxLength": 200 },
        "Timestamp": { "type": "integer", "format": "int64", "description": "Milliseconds since 1970." },
        "DomainUpdate": strict(0, &[
            ("ttl", json!({
                "type": ["string", "integer"], "minimum": 0,
                "description": "How long the domain is fresh: a duration such as `2m`, or a number of seconds. Without it, and with 0, for ever.",
            })),
            ("ttl_ms", json!({ "type": "integer", "minimum": 0, "description": "The same in milliseconds, instead of ttl." })),
        ]),
        "DomainView": object(2, &[("domain", text()), ("fresh", flag()), ("expires_at", of("Timestamp"))]),
        "EventView": object(2, &[("id", text()), ("name", text()), ("event", of("Event"))]),
        "Event": object(1, &[
            ("kind", json!({ "enum": ["desired_lrp", "actual_lrp", "actual_lrp_crashed", "task", "domain", "cell", "job", "run"] })),
            ("before", json!({ "type": "object" })),
            ("after", json!({ "type": "object" })),
            ("process_guid", of("Id")),
            ("index", json!({ "type": "integer", "minimum": 0 })),
            ("instance_guid", of("Id")),
            ("crash_count", json!({ "type": "integer", "minimum": 1 })),
            ("reason", text()),
            ("cell_id", of("Id")),
            ("present", flag()),
        ]),
        "Explanation": object(3, &[
            ("subject", text()), ("summary", text()), ("facts", list(&text())), ("next_try_at", of("Timestamp")),
            ("rule", text()), ("remedies", list(&text())),
            ("inputs", list(&object(2, &[("name", text()), ("value", text())]))),
        ]),
        "LogEvent": object(3, &[
            ("at", of("Timestamp")), ("stream", json!({ "enum": ["stdout", "stderr", "kapell"] })), ("text", text()),
        ]),
    })
}

fn actions() -> Value {
    let kinds = [
        ("run", "Run"),
        ("download", "Download"),
        ("upload", "Upload"),
        ("timeout", "Timeout"),
        ("try", "Nested"),
        ("parallel", "Several"),
        ("serial", "Several"),
        ("codependent", "Several"),
        ("emit_progress", "EmitProgress"),
    ];
    let one_of: Vec<Value> =
        kinds.iter().map(|(name, schema)| strict(1, &[(name, of(schema))])).collect();
    json!({
        "Action": { "oneOf": one_of },
        "Variable": strict(1, &[
            ("name", text()), ("value", text()),
            ("secret", json!({ "$ref": "#/components/schemas/Id", "description": "In the place of a value: a secret of the domain of the work." })),
        ]),
        "Run": strict(1, &[
            ("path", text()), ("args", list(&text())), ("dir", text()), ("env", list(&of("Variable"))), ("user", text()),
        ]),
        "Download": strict(2, &[("from", text()), ("to", text()), ("checksum", text())]),
        "Upload": strict(2, &[("from", text()), ("to", text())]),
        "Timeout": strict(2, &[("action", of("Action")), ("timeout_ms", count())]),
        "Nested": strict(1, &[("action", of("Action"))]),
        "Several": strict(1, &[("actions", list(&of("Action")))]),
        "EmitProgress": strict(1, &[
            ("action", of("Action")), ("start_message", text()), ("success_message", text()), ("failure_message", text()),
        ]),
    })
}

fn desired() -> Value {
    json!({
        "DesiredLrp": strict(3, &[
            ("process_guid", of("Id")), ("domain", of("Id")), ("action", of("Action")),
            ("instances", json!({ "type": "integer", "minimum": 0, "default": 1 })),
            ("rootfs", text()), ("memory_mb", count()), ("disk_mb", count()), ("max_pids", count()),
            ("cpu_millis", count()), ("log_rate", count()), ("check", of("Check")), ("readiness", of("Check")),
            ("placement_tags", list(&text())), ("setup", of("Action")), ("monitor", of("Action")),
            ("start_timeout_ms", count()), ("stop_grace_ms", count()), ("env", list(&of("Variable"))),
            ("ports", list(&port())),
            ("annotation", text()), ("routes", json!({ "type": "object" })),
            ("version", count()), ("created_at", of("Timestamp")), ("updated_at", of("Timestamp")),
            ("incarnation", count()), ("retiring", flag()),
        ]),
        "Check": strict(0, &[
            ("http", strict(1, &[("port", port()), ("path", text())])), ("tcp", strict(1, &[("port", port())])),
            ("every_ms", count()), ("timeout_ms", count()),
        ]),
        "DesiredUpdate": strict(0, &[
            ("instances", count()), ("annotation", text()), ("routes", json!({ "type": "object" })), ("version", count()),
        ]),
    })
}

fn instances() -> Value {
    json!({
        "ActualState": { "enum": ["UNCLAIMED", "CLAIMED", "RUNNING", "CRASHED"] },
        "PortMapping": object(2, &[("container_port", count()), ("host_port", count())]),
        "NetInfo": object(2, &[("address", text()), ("ports", list(&of("PortMapping")))]),
        "LrpKey": object(2, &[("process_guid", of("Id")), ("index", count())]),
        "ActualLrp": object(8, &[
            ("process_guid", of("Id")), ("index", count()), ("domain", of("Id")), ("state", of("ActualState")),
            ("since", of("Timestamp")), ("crash_count", count()), ("evacuating", flag()), ("version", count()),
            ("instance_guid", of("Id")), ("cell_id", of("Id")), ("net", of("NetInfo")), ("ready", flag()), ("crash_reason", text()),
            ("placement_error", text()), ("expires_at", of("Timestamp")), ("incarnation", count()),
        ]),
        "Endpoint": object(7, &[
            ("index", count()), ("instance_guid", of("Id")), ("cell_id", of("Id")), ("evacuating", flag()), ("ready", flag()),
            ("address", text()), ("ports", list(&of("PortMapping"))),
        ]),
    })
}

fn tasks() -> Value {
    let definition = [
        ("domain", of("Id")),
        ("action", of("Action")),
        ("task_guid", of("Id")),
        ("rootfs", text()),
        ("memory_mb", count()),
        ("disk_mb", count()),
        ("max_pids", count()),
        ("cpu_millis", count()),
        ("log_rate", count()),
        ("placement_tags", list(&text())),
        ("env", list(&of("Variable"))),
        ("result_file", text()),
        ("completion_callback_url", text()),
        ("annotation", text()),
    ];
    let progress = object(
        6,
        &[
            ("instance_guid", of("Id")),
            ("state", of("TaskState")),
            ("failed", flag()),
            ("created_at", of("Timestamp")),
            ("since", of("Timestamp")),
            ("version", count()),
            ("cell_id", of("Id")),
            ("failure_reason", text()),
            ("result", text()),
            ("exit_code", json!({ "type": "integer" })),
            ("placement_error", text()),
            ("started_at", of("Timestamp")),
            ("first_completed_at", of("Timestamp")),
        ],
    );
    json!({
        "TaskState": { "enum": ["PENDING", "RUNNING", "COMPLETED", "RESOLVING"] },
        "TaskDefinition": strict(2, &definition),
        "Task": { "allOf": [object(3, &definition), progress] },
    })
}

fn cells() -> Value {
    let presence = [
        ("cell_id", of("Id")),
        ("url", text()),
        ("capacity", of("Resources")),
        ("home", text()),
        ("zone", text()),
        ("rootfs_schemes", list(&text())),
        ("placement_tags", list(&text())),
        ("optional_placement_tags", list(&text())),
        ("evacuating", flag()),
        ("version", text()),
    ];
    let view = object(
        3,
        &[
            ("state", json!({ "enum": ["present", "evacuating", "awaited"] })),
            ("lrps", count()),
            ("tasks", count()),
            ("heard_ms_ago", count()),
        ],
    );
    json!({
        "Resources": object(3, &[("memory_mb", count()), ("disk_mb", count()), ("containers", count())]),
        "CellPresence": object(3, &presence),
        "CellView": { "allOf": [object(3, &presence), view] },
        "Welcome": object(2, &[("epoch", count()), ("ttl_ms", count())]),
        "RecordsWanted": object(2, &[("lrps", list(&of("LrpKey"))), ("tasks", list(&of("Id")))]),
        "CellRecords": object(4, &[
            ("epoch", count()), ("instances", list(&of("ActualLrp"))), ("evacuating", list(&of("ActualLrp"))),
            ("tasks", list(&of("Task"))),
        ]),
    })
}

fn plans() -> Value {
    let steps = json!({ "enum": [
        "create", "scale_up", "scale_down", "update", "unchanged", "refused", "not_done",
    ] });
    json!({
        "Wishes": strict(0, &[
            ("lrps", list(&of("DesiredLrp"))), ("tasks", list(&of("TaskDefinition"))),
            ("keep_instances", json!({
                "type": "array", "items": of("Id"),
                "description": "Of these processes as many instances stay as there are, if they stand.",
            })),
            ("order", json!({
                "type": "array", "items": text(),
                "description": "In which order they would be applied, each as lrp/GUID or task/GUID. What is \
                                not named comes after it: first LRPs, then tasks.",
            })),
        ]),
        "Plan": object(5, &[
            ("fits", flag()), ("wishes", list(&of("PlannedWish"))), ("units", list(&of("PlannedUnit"))),
            ("stops", list(&of("PlannedStop"))), ("silent", list(&of("Id"))),
        ]),
        "PlannedWish": object(4, &[
            ("subject", text()), ("step", steps), ("before", count()), ("after", count()),
            ("fields", list(&text())), ("reason", text()),
        ]),
        "PlannedUnit": object(3, &[
            ("subject", text()), ("wished", flag()), ("waits", flag()), ("cell_id", of("Id")), ("reason", text()),
        ]),
        "PlannedStop": object(1, &[("subject", text()), ("cell_id", of("Id"))]),
    })
}

fn reports() -> Value {
    json!({
        "Reports": list(&of("Report")),
        "Report": object(2, &[
            ("report", json!({ "enum": [
                "claim", "running", "crashed", "remove", "remove_evacuating", "evacuate", "unclaim", "start_task",
                "complete_task",
            ] })),
            ("instance_guid", of("Id")), ("key", of("LrpKey")), ("task_guid", of("Id")), ("domain", of("Id")),
            ("net", of("NetInfo")), ("reason", text()), ("failed", flag()), ("failure_reason", text()),
            ("result", text()), ("exit_code", json!({ "type": "integer" })),
        ]),
        "ReportAnswer": { "oneOf": [
            object(1, &[("done", json!({ "oneOf": [of("ActualLrp"), { "type": "null" }] }))]),
            object(1, &[("refused", json!({ "type": "object" }))]),
            { "const": "busy" },
        ] },
    })
}

fn tokens() -> Value {
    let domains = json!({ "type": "array", "items": of("Id"), "description": "Without it, all." });
    let role = json!({ "enum": ["operator", "reader", "cell-join"] });
    let view = [
        ("id", text()),
        ("role", role.clone()),
        ("name", text()),
        ("created_at", of("Timestamp")),
        ("expires_at", of("Timestamp")),
        ("state", json!({ "enum": ["valid", "revoked", "used"] })),
        ("domains", domains.clone()),
        ("cell_id", of("Id")),
        ("ended_at", of("Timestamp")),
        ("used_by", of("Id")),
    ];
    let secret = object(
        1,
        &[("token", json!({ "type": "string", "description": "It is not told again." }))],
    );
    json!({
        "TokenWanted": strict(2, &[
            ("role", role),
            ("ttl_ms", json!({ "type": "integer", "minimum": 1, "description": "How long it counts." })),
            ("domains", domains),
            ("name", text()),
            ("cell_id", of("Id")),
        ]),
        "CertificateWanted": strict(1, &[
            ("csr", json!({ "type": "string", "description": "A certificate signing request in PEM. Of it, only the public key counts." })),
        ]),
        "CellCertificate": object(3, &[
            ("certificate", text()),
            ("ca", text()),
            ("renew_in_ms", json!({ "type": "integer", "minimum": 0, "description": "When the next one is to be asked for." })),
        ]),
        "TokenView": object(6, &view),
        "TokenMade": { "allOf": [of("TokenView"), secret] },
    })
}

fn secrets() -> Value {
    let value =
        json!({ "type": "string", "minLength": 1, "maxLength": kapell_core::secret::LARGEST });
    let holder = |fields: &[(&str, Value)]| object(fields.len(), fields);
    json!({
        "SecretValue": strict(1, &[("value", value.clone())]),
        "SecretView": object(4, &[
            ("domain", of("Id")), ("name", of("Id")), ("version", count()), ("changed_at", of("Timestamp")),
        ]),
        "SecretsWanted": { "oneOf": [
            strict(1, &[("lrp", holder(&[("key", of("LrpKey")), ("instance_guid", of("Id"))]))]),
            strict(1, &[("task", holder(&[("task_guid", of("Id")), ("instance_guid", of("Id"))]))]),
        ] },
        "SecretGiven": object(2, &[("name", of("Id")), ("value", value)]),
    })
}

fn audit() -> Value {
    let outcome = object(
        1,
        &[
            (
                "status",
                json!({ "type": "integer", "description": "As answered; 499: the client did not wait for it." }),
            ),
            ("code", json!({ "type": "string", "description": "Why it was refused." })),
        ],
    );
    let names = json!({ "type": "object", "additionalProperties": text(), "description": "The names of what it is about, such as `process_guid`, `task_guid`, `domain`, `cell_id`, `token_id` and `secret`." });
    json!({
        "AuditOutcome": outcome,
        "AuditRecord": object(5, &[
            ("id", text()),
            ("at", of("Timestamp")),
            ("kind", json!({ "type": "string", "description": "The kind of request, or `enter` for credentials that were refused." })),
            ("op", json!({ "type": "string", "description": "The operationId." })),
            ("from", json!({ "type": "string", "description": "The client's address." })),
            ("role", text()),
            ("name", text()),
            ("token", json!({ "type": "string", "description": "The id of the token that was borne." })),
            ("subject", json!({ "type": "string", "description": "Of the certificate that was shown." })),
            ("about", names),
            ("via", json!({ "type": "string", "description": "The host that passed the request on." })),
            ("request_id", json!({ "type": "string", "description": "The request's `X-Request-Id`." })),
            ("count", json!({ "type": "integer", "minimum": 1, "description": "How often, of refused credentials." })),
            ("outcome", of("AuditOutcome")),
        ]),
        "AuditPage": object(3, &[
            ("records", list(&of("AuditRecord"))),
            ("next", json!({ "type": "string", "description": "To be given as `after` for what follows." })),
            ("is_last", flag()),
        ]),
    })
}
