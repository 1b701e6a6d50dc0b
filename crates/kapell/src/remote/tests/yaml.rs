use kapell_core::yaml::{Node, Value as Yaml, parse};
use serde_json::{Value, json};

use super::super::yaml::emit;

/// What a reader of YAML makes of it.
fn read(node: &Node<'_>) -> Value {
    match &node.value {
        Yaml::Scalar(scalar) if scalar.is_null() => Value::Null,
        Yaml::Scalar(scalar) if scalar.plain => {
            serde_json::from_str(&scalar.text).unwrap_or_else(|_| Value::from(&*scalar.text))
        }
        Yaml::Scalar(scalar) => Value::from(&*scalar.text),
        Yaml::List(items) => items.iter().map(read).collect(),
        Yaml::Map(entries) => entries
            .iter()
            .map(|(key, value)| (key.scalar().unwrap().text.to_string(), read(value)))
            .collect(),
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let texts = [
        "",
        " ",
        "a b",
        "true",
        "No",
        "null",
        "~",
        "1",
        "1.5",
        "0x1f",
        "1e3",
        "-",
        "- a",
        "a: b",
        "#x",
        "&a",
        "*a",
        "!t",
        "|",
        ">",
        "'",
        "\"",
        "\\",
        "\n",
        "a\nb\n",
        "\t",
        "{}",
        "[",
        "%",
        "@",
        "`",
        "ä",
        "日本",
        "\u{1}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}x",
        "2020-01-01",
        "12:30",
        "=",
        "<<",
        "/bin/sh",
        "web-1",
        "a.b",
        "..",
        "?",
        ", ",
        "x\u{7f}",
    ];
    let value = json!({
        "texts": texts.to_vec(),
        "": "empty key",
        "a: b": {"nested": [[1, [2, 3]], [], {}, {"x": {"y": null}, "z": [true]}]},
        "numbers": [0, -5, 1.25, 18_446_744_073_709_551_615_u64],
        "true": false,
    });
    let text = emit(&value);
    let documents = parse(&text).unwrap();
    assert_eq!(documents.len(), 1);
    assert_eq!(read(&documents[0]), value, "{text}");
}

#[test]
fn it_looks_as_people_write_it() {
    let value =
        json!({"name": "web", "ports": [80, 443], "routes": {}, "list": [{"a": 1, "b": "x y"}]});
    let want = "\
name: web
ports:
  - 80
  - 443
routes: {}
list:
  - a: 1
    b: \"x y\"
";
    assert_eq!(emit(&value), want);
    assert_eq!(emit(&json!([])), "[]\n");
    assert_eq!(emit(&json!([[1], 2])), "-\n  - 1\n- 2\n");
}
