//! Code blocks inside code blocks. A model that shows Markdown in a block often marks the inner blocks
//! with as many ticks as the outer one, so that the first inner fence would end it.

use super::Fence;

/// The source with a longer fence around Markdown that holds code blocks. `None` when there is none.
pub(super) fn untangled(source: &str) -> Option<String> {
    if !["```md", "```markdown", "~~~md", "~~~markdown"].iter().any(|fence| source.contains(fence))
    {
        return None;
    }
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut out: Option<String> = None;
    let mut done = 0;
    let mut index = 0;
    let mut open: Option<Fence> = None;
    while index < lines.len() {
        let line = lines[index];
        if let Some(fence) = open {
            open = (!fence.is_closed_by(line)).then_some(fence);
            index += 1;
            continue;
        }
        let Some((fence, info)) = Fence::of(super::content(line)) else {
            index += 1;
            continue;
        };
        open = Some(fence);
        let language = info.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        if !matches!(language, "md" | "markdown") {
            index += 1;
            continue;
        }
        let Some(nest) = Nest::from(&lines[index + 1..], fence) else {
            index += 1;
            continue;
        };
        let out = out.get_or_insert_with(|| String::with_capacity(source.len() + 16));
        out.extend(lines[done..index].iter().copied());
        push_longer(line, fence, nest.longest + 1, out);
        let end = index + 1 + nest.lines;
        out.extend(lines[index + 1..end].iter().copied());
        index = end;
        if let Some(closing) = lines.get(end) {
            push_longer(closing, fence, nest.longest + 1, out);
            index += 1;
        }
        done = index;
        open = None;
    }
    let mut out = out?;
    out.extend(lines[done..].iter().copied());
    Some(out)
}

/// The lines of a block that holds other blocks.
struct Nest {
    /// Up to the line that closes it.
    lines: usize,
    /// The longest fence in it.
    longest: usize,
}

impl Nest {
    fn from(lines: &[&str], outer: Fence) -> Option<Self> {
        let mut depth = 1_usize;
        let mut longest = outer.length;
        let mut holds_another = false;
        for (index, line) in lines.iter().enumerate() {
            let Some((fence, info)) = Fence::of(super::content(line)) else { continue };
            if fence.mark != outer.mark {
                continue;
            }
            longest = longest.max(fence.length);
            if !info.is_empty() {
                holds_another = true;
                depth += 1;
            } else if fence.length >= outer.length {
                depth -= 1;
                if depth == 0 {
                    return holds_another.then_some(Self { lines: index, longest });
                }
            }
        }
        holds_another.then_some(Self { lines: lines.len(), longest })
    }
}

fn push_longer(line: &str, fence: Fence, length: usize, out: &mut String) {
    let start = line.find(fence.mark).unwrap_or(0);
    out.push_str(&line[..start]);
    out.extend(std::iter::repeat_n(fence.mark, length));
    out.push_str(line[start..].trim_start_matches(fence.mark));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_that_holds_code_gets_a_longer_fence() {
        for (source, expect) in [
            (
                "```markdown\n# A\n```sh\nls\n```\nb\n```\nend",
                Some("````markdown\n# A\n```sh\nls\n```\nb\n````\nend"),
            ),
            ("```md\n```sh\nls\n```\nmore", Some("````md\n```sh\nls\n```\nmore")),
            ("```markdown\n# A\n```\nend", None),
            ("```text\n```sh\n```\n", None),
            ("```sh\n```md\nx\n```\n", None),
            ("- ```md\n  ```sh\n  ```\n  ```\n", Some("- ````md\n  ```sh\n  ```\n  ````\n")),
        ] {
            assert_eq!(untangled(source).as_deref(), expect, "{source:?}");
        }
    }
}
