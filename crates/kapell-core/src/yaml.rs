//! YAML text as a tree that remembers where everything stands.
//!
//! Typed readers stop at the first mismatch and forget positions; a person wants every problem of a
//! file at once, each at its place. So the tree is kept plain and the reader walks it.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::source::{Problem, Span};

/// How deep a file may nest. Ours needs six; the rest is for anchors and mistakes.
pub const MAX_DEPTH: usize = 64;
/// How many nodes aliases may add in all, so that a small file cannot unfold into a huge one.
pub const MAX_ALIASED_NODES: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    pub span: Span,
    pub value: Value<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Scalar(Scalar<'a>),
    List(Vec<Node<'a>>),
    Map(Vec<(Node<'a>, Node<'a>)>),
}

/// One value as it was written: `100`, `true` and `"100"` all keep their text.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar<'a> {
    pub text: Cow<'a, str>,
    /// Written without quotes, so it may stand for a number, a truth value or nothing.
    pub plain: bool,
}

impl Scalar<'_> {
    pub fn is_null(&self) -> bool {
        self.plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }
}

impl<'a> Node<'a> {
    pub fn scalar(&self) -> Option<&Scalar<'a>> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(Scalar::is_null)
    }

    /// What this is, in the words of an error message.
    pub fn what(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) if scalar.is_null() => "nothing",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Scalar(_) => 0,
            Value::List(items) => items.iter().map(Self::count).sum(),
            Value::Map(entries) => entries.iter().map(|(k, v)| k.count() + v.count()).sum(),
        }
    }

    /// How many lists and mappings nest in it, itself included.
    fn depth(&self) -> usize {
        match &self.value {
            Value::Scalar(_) => 0,
            Value::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Map(entries) => {
                let deeper = entries.iter().map(|(k, v)| k.depth().max(v.depth())).max();
                1 + deeper.unwrap_or(0)
            }
        }
    }
}

/// Reads all documents of `text`. The first syntax error ends it: nothing after it can be trusted.
pub fn parse(text: &str) -> Result<Vec<Node<'_>>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tree = Tree::default();
    let mut place = Place::new(text);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax_problem(&error))?;
        let event = if let Event::Scalar(value, style, anchor, tag) = event {
            Event::Scalar(place.borrow(span.start.index(), value), style, anchor, tag)
        } else {
            event
        };
        tree.take(event, shrink(span))?;
    }
    Ok(tree.documents)
}

fn syntax_problem(error: &ScanError) -> Problem {
    let mark = error.marker();
    let span = Span::new(small(mark.line()), small(mark.col() + 1), 1);
    let problem = Problem::error(span, format!("invalid YAML: {}", error.info()));
    match error.info() {
        // The scanner reads ahead and has a limit of its own.
        info if info.contains("recursion limit") => too_deep(span),
        info if info.contains("tab") => problem.help("indent with spaces, YAML takes no tabs"),
        info if info.contains("unknown anchor") => problem
            .help("define it first with `&name`, or quote the text if `*` is meant literally"),
        info if info.contains("anchor or alias") => problem
            .help("a text that begins with `*` or `&`, such as a line of cron, must be in quotes"),
        _ => problem.help("check indentation, colons and quotes here and on the line before"),
    }
}

fn too_deep(span: Span) -> Problem {
    Problem::error(span, format!("nested more than {MAX_DEPTH} levels deep"))
        .help("a workflow file needs no such depth; is a bracket left open?")
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn shrink(span: saphyr_parser::Span) -> Span {
    let same_line = span.start.line() == span.end.line();
    let length = if same_line { span.end.col() - span.start.col() } else { 1 };
    Span::new(small(span.start.line()), small(span.start.col() + 1), small(length))
}

/// Finds a value again in the text it was read from, so that no copy of it is kept.
///
/// The parser counts in characters; values come in the order of the text, so counting goes on
/// from where the last one stood.
#[derive(Debug)]
struct Place<'a> {
    text: &'a str,
    is_ascii: bool,
    characters: usize,
    bytes: usize,
}

impl<'a> Place<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, is_ascii: text.is_ascii(), characters: 0, bytes: 0 }
    }

    fn byte_at(&mut self, character: usize) -> usize {
        if self.is_ascii {
            return character;
        }
        if let Some(further) = character.checked_sub(self.characters) {
            let rest = &self.text[self.bytes..];
            self.bytes += rest.char_indices().nth(further).map_or(rest.len(), |(at, _)| at);
            self.characters = character;
        }
        self.bytes
    }

    /// The same text as it stands in the file, if it stands there so: plain, or after a quote.
    fn borrow(&mut self, character: usize, value: Cow<'a, str>) -> Cow<'a, str> {
        let at = self.byte_at(character);
        let stands_at =
            |at: usize| self.text.get(at..at + value.len()).filter(|text| *text == value);
        match stands_at(at).or_else(|| stands_at(at + 1)) {
            Some(text) => Cow::Borrowed(text),
            None => value,
        }
    }
}

/// A list or mapping whose end has not been seen yet.
#[derive(Debug)]
struct Open<'a> {
    span: Span,
    anchor: usize,
    is_map: bool,
    items: Vec<Node<'a>>,
}

#[derive(Debug, Default)]
struct Tree<'a> {
    documents: Vec<Node<'a>>,
    open: Vec<Open<'a>>,
    anchors: FxHashMap<usize, Node<'a>>,
    aliased: usize,
    /// How many values there are, and how many of them were copied because of an anchor.
    created: usize,
    anchored: usize,
}

impl<'a> Tree<'a> {
    fn take(&mut self, event: Event<'a>, span: Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, _tag) => {
                let plain = style == ScalarStyle::Plain;
                self.add(Node { span, value: Value::Scalar(Scalar { text, plain }) }, anchor)?;
            }
            Event::SequenceStart(anchor, _tag) => self.begin(span, anchor, false)?,
            Event::MappingStart(anchor, _tag) => self.begin(span, anchor, true)?,
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn begin(&mut self, span: Span, anchor: usize, is_map: bool) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.open.push(Open { span, anchor, is_map, items: Vec::new() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(Open { span, anchor, is_map, items }) = self.open.pop() else { return Ok(()) };
        let value = if is_map { Value::Map(Self::pair_up(items)?) } else { Value::List(items) };
        self.add(Node { span, value }, anchor)
    }

    /// Makes entries of keys and values, with `<<: *base` replaced by what the base has.
    fn pair_up(items: Vec<Node<'a>>) -> Result<Vec<(Node<'a>, Node<'a>)>, Problem> {
        let mut entries = Vec::with_capacity(items.len() / 2);
        let mut bases = Vec::new();
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let merges = key.scalar().is_some_and(|key| key.plain && key.text == "<<");
            match value.value {
                Value::Map(base) if merges => bases.extend(base),
                Value::List(list) if merges => {
                    for base in list {
                        match base.value {
                            Value::Map(base) => bases.extend(base),
                            Value::Scalar(_) | Value::List(_) => return Err(bad_merge(base.span)),
                        }
                    }
                }
                Value::Scalar(_) if merges => return Err(bad_merge(value.span)),
                Value::Map(_) | Value::List(_) | Value::Scalar(_) => entries.push((key, value)),
            }
        }
        if bases.is_empty() {
            return Ok(entries);
        }
        let text = |key: &Node<'a>| key.scalar().map(|key| key.text.clone());
        let mut own: FxHashSet<_> = entries.iter().filter_map(|(key, _)| text(key)).collect();
        for (key, value) in bases {
            if text(&key).is_none_or(|text| own.insert(text)) {
                entries.push((key, value));
            }
        }
        Ok(entries)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Problem> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(Problem::error(span, "an alias refers to the value that contains it")
                .help("an anchor can be used only after its value has ended"));
        };
        if self.open.len() + node.depth() > MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.aliased += node.count();
        if self.aliased > MAX_ALIASED_NODES {
            return Err(Problem::error(
                span,
                format!("aliases unfold into more than {MAX_ALIASED_NODES} values"),
            )
            .help("write the values out, or use fewer aliases of aliases"));
        }
        let node = node.clone();
        self.add(node, 0)
    }

    fn add(&mut self, node: Node<'a>, anchor: usize) -> Result<(), Problem> {
        self.created += 1;
        if anchor > 0 {
            // Side by side, anchors hold no more than there is; within each other they would
            // multiply it.
            self.anchored += node.count();
            if self.anchored > self.created + MAX_ALIASED_NODES {
                let message = format!(
                    "anchors within anchors hold more than {MAX_ALIASED_NODES} values again"
                );
                return Err(Problem::error(node.span, message)
                    .help("remove the anchors that no alias uses"));
            }
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.documents.push(node),
        }
        Ok(())
    }
}

fn bad_merge(span: Span) -> Problem {
    Problem::error(span, "`<<` merges a mapping, not this").help("write `<<: *name_of_a_mapping`")
}

#[cfg(test)]
mod tests;
