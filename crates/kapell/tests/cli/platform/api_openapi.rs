//! The API describes itself, and what it says is so.

use std::collections::BTreeSet;
use std::io::Read as _;

use serde_json::{Map, Value};

use super::Site;
use super::api::{JSON, request};

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// What is wrong with a document by the rules of OpenAPI 3.1, as far as we use it.
#[derive(Default)]
struct Judge {
    document: Value,
    wrong: Vec<String>,
}

impl Judge {
    fn needs(&mut self, right: bool, place: &str, what: &str) {
        if !right {
            self.wrong.push(format!("{place}: {what}"));
        }
    }

    fn object(&mut self, value: &Value, place: &str) -> Map<String, Value> {
        self.needs(value.is_object(), place, "must be an object");
        value.as_object().cloned().unwrap_or_default()
    }

    fn document(&mut self) {
        let document = self.document.clone();
        let is_31 = document["openapi"].as_str().is_some_and(|it| it.starts_with("3.1."));
        self.needs(is_31, "openapi", "must be 3.1.x");
        for field in ["title", "version"] {
            self.needs(document["info"][field].is_string(), "info", field);
        }
        let known = ["openapi", "info", "servers", "security", "paths", "components", "tags"];
        for key in self.object(&document, "document").keys() {
            self.needs(known.contains(&key.as_str()), key, "nobody knows this key");
        }
        for scheme in document["security"].as_array().into_iter().flatten() {
            for name in self.object(scheme, "security").keys() {
                let defined = &document["components"]["securitySchemes"][name];
                self.needs(defined["type"].is_string(), name, "is no security scheme");
            }
        }
        let mut ids = BTreeSet::new();
        for (path, operations) in self.object(&document["paths"], "paths") {
            self.needs(path.starts_with('/'), &path, "must begin with /");
            for (method, operation) in self.object(&operations, &path) {
                let place = format!("{method} {path}");
                self.needs(METHODS.contains(&method.as_str()), &place, "no method");
                let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
                self.needs(!id.is_empty() && ids.insert(id), &place, "operationId must be its own");
                self.operation(&operation, &path, &place);
            }
        }
        for (name, schema) in self.object(&document["components"]["schemas"], "schemas") {
            self.schema(&schema, &name);
        }
        self.references(&document);
    }

    fn operation(&mut self, operation: &Value, path: &str, place: &str) {
        let mut in_path = BTreeSet::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            let at = format!("{place} {name}");
            let kind = parameter["in"].as_str().unwrap_or_default();
            self.needs(["path", "query", "header", "cookie"].contains(&kind), &at, "in");
            if kind == "path" {
                self.needs(parameter["required"] == true, &at, "must be required");
                in_path.insert(name);
            }
            self.schema(&parameter["schema"], &at);
        }
        let names: BTreeSet<String> = path
            .split('/')
            .filter_map(|part| Some(part.strip_prefix('{')?.strip_suffix('}')?.to_owned()))
            .collect();
        self.needs(names == in_path, place, "must name the parameters of its path");
        if let Some(body) = operation.get("requestBody") {
            self.content(&body["content"], place);
        }
        let responses = self.object(&operation["responses"], place);
        self.needs(responses.keys().any(|status| status.starts_with('2')), place, "no success");
        for (status, response) in responses {
            let at = format!("{place} {status}");
            let is_status = status.parse().is_ok_and(|status: u16| (100..600).contains(&status));
            self.needs(is_status, &at, "no status");
            self.needs(response["description"].is_string(), &at, "no description");
            if let Some(content) = response.get("content") {
                self.content(content, &at);
            }
        }
    }

    fn content(&mut self, content: &Value, place: &str) {
        for (kind, media) in self.object(content, place) {
            self.needs(kind.contains('/'), place, "no media type");
            if let Some(schema) = media.get("schema") {
                self.schema(schema, place);
            }
        }
    }

    fn schema(&mut self, schema: &Value, place: &str) {
        let fields = self.object(schema, place);
        let types = match fields.get("type") {
            Some(Value::Array(types)) => types.clone(),
            Some(one) => vec![one.clone()],
            None => Vec::new(),
        };
        for name in types {
            self.needs(name.as_str().is_some_and(|it| TYPES.contains(&it)), place, "no type");
        }
        let properties = fields.get("properties").map(|it| self.object(it, place));
        for (name, inner) in properties.clone().unwrap_or_default() {
            self.schema(&inner, &format!("{place}.{name}"));
        }
        for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
            let is_there = properties
                .as_ref()
                .is_some_and(|it| name.as_str().is_some_and(|name| it.contains_key(name)));
            self.needs(is_there, place, &format!("{name} is required and not there"));
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = fields.get(key).filter(|it| !it.is_boolean()) {
                self.schema(inner, &format!("{place}.{key}"));
            }
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for inner in fields.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.schema(inner, &format!("{place}.{key}"));
            }
        }
    }

    fn references(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref") {
                    let found = target.strip_prefix('#').and_then(|it| self.document.pointer(it));
                    let is_there = found.is_some();
                    self.needs(is_there, target, "refers to nothing");
                }
                map.values().for_each(|each| self.references(each));
            }
            Value::Array(list) => list.iter().for_each(|each| self.references(each)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The status of an answer that may have no end, and the beginning of its body.
fn status(site: &Site, method: &str, path: &str, body: &str) -> (String, String) {
    let headers: &[&str] = if body.is_empty() { &[] } else { &[JSON] };
    let mut stream = request(site, method, path, headers, body);
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
        let length = stream.read(&mut piece).expect("a head");
        assert!(length > 0, "{method} {path} ended without a head");
        heard.extend_from_slice(&piece[..length]);
    }
    let text = String::from_utf8_lossy(&heard).into_owned();
    (text.split(' ').nth(1).unwrap_or_default().to_owned(), text)
}

#[test]
pub(super) fn the_document_is_openapi_and_every_path_in_it_answers_as_it_says() {
    let site = Site::up();
    let document = site.get("/v1/openapi.json");
    let mut judge = Judge { document: document.clone(), wrong: Vec::new() };
    judge.document();
    assert!(judge.wrong.is_empty(), "{:#?}", judge.wrong);
    let paths = document["paths"].as_object().expect("paths");
    for needed in [
        "/v1/domains/{domain}",
        "/v1/desired-lrps",
        "/v1/desired-lrps/{process_guid}",
        "/v1/actual-lrps",
        "/v1/tasks",
        "/v1/tasks/{task_guid}",
        "/v1/tasks/{task_guid}/cancel",
        "/v1/domains",
        "/v1/openapi.json",
        "/v1/cells",
        "/v1/cells/{cell_id}/evacuate",
        "/v1/events",
        "/v1/endpoints/{process_guid}",
    ] {
        assert!(paths.contains_key(needed), "{needed}");
    }
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let asked: Vec<&str> = path
                .split('/')
                .map(|part| match part {
                    "{index}" => "0",
                    part if part.starts_with('{') => "nobody",
                    part => part,
                })
                .collect();
            let body = if operation.get("requestBody").is_some() { "{}" } else { "" };
            let asked = asked.join("/");
            let (status, text) = status(&site, &method.to_uppercase(), &asked, body);
            assert!(operation["responses"].get(&status).is_some(), "{method} {asked}: {text}");
            assert!(!text.contains("there is nothing at"), "{method} {asked}: {text}");
        }
    }
}
