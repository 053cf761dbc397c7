//! From the text of a file to lines without what terminals, logs and mails put around them.

use std::borrow::Cow;

/// The lines of a text: escapes, carriage returns and control characters gone, quoting and log prefixes stripped.
pub(super) fn lines(text: &str) -> Vec<Cow<'_, str>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines: Vec<Cow<'_, str>> = text.lines().take(MAX_LINES).map(clean).collect();
    if let Some(prefix) = common_prefix(&lines) {
        for line in &mut lines {
            let rest = line
                .strip_prefix(prefix.as_str())
                .map(|rest| rest.strip_prefix(' ').unwrap_or(rest).to_owned());
            if let Some(rest) = rest {
                *line = Cow::Owned(rest);
            }
        }
    }
    lines
}

fn clean(line: &str) -> Cow<'_, str> {
    let line = cut(line);
    let line = strip_stamps(line);
    let is_plain = line.bytes().all(|b| b == b'\t' || (b >= 0x20 && b != 0x7f)) && !line.contains('\u{a0}');
    let line = if is_plain { Cow::Borrowed(line) } else { Cow::Owned(without_controls(line)) };
    if line.contains('[') { without_bare_colours(&line).map_or(line, Cow::Owned) } else { line }
}

/// A line of a sane size: the rest of a longer one is not looked at.
fn cut(line: &str) -> &str {
    if line.len() <= MAX_LINE {
        return line;
    }
    let end = (0..=MAX_LINE).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    &line[..end]
}

/// Leading marks of quoted mails and of logs: `> `, ISO times, `stdout F`, `[tag]`.
fn strip_stamps(line: &str) -> &str {
    let mut rest = line;
    for _ in 0..MAX_STAMPS {
        let trimmed = rest.trim_start_matches([' ', '>']);
        let marked = rest[..rest.len() - trimmed.len()].contains('>');
        let candidate = if marked { trimmed } else { rest };
        let Some(word) = candidate.split([' ', '\t']).next().filter(|word| !word.is_empty()) else {
            return candidate;
        };
        let is_stamp = is_time(word) || is_tag(word) || matches!(word, "stdout" | "stderr" | "F" | "P");
        if !is_stamp {
            return if marked { strip_one(trimmed) } else { rest };
        }
        rest = strip_one(&candidate[word.len()..]);
    }
    rest
}

fn strip_one(text: &str) -> &str {
    text.strip_prefix(' ').unwrap_or(text)
}

/// `2024-05-01T10:00:00.123Z` or a date or a time of day alone.
fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let marks = word.bytes().filter(|b| matches!(b, b'-' | b':')).count();
    let others = word.bytes().all(|b| b.is_ascii_digit() || b"-:.,TZ+".contains(&b));
    let starts = word.bytes().take(4).all(|b| b.is_ascii_digit() || b == b':');
    let is_bdf = super::scan::bus(word).is_some();
    digits >= 6 && marks >= 2 && others && starts && !is_bdf
}

/// `[rank0]:` and `[1,0]<stdout>:`, but not the brackets of `iblinkinfo`.
fn is_tag(word: &str) -> bool {
    let Some(end) = word.find(']') else { return false };
    let inside = word.starts_with('[') && end > 1;
    let after = &word[end + 1..];
    inside && (after.is_empty() || after == ":" || (after.starts_with('<') && after.ends_with(':')))
}

/// `[4m` and `[0m`: what is left of a colour where a web page has swallowed the escape. `None` if there is none.
fn without_bare_colours(line: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = line;
    let mut found = false;
    while let Some(start) = rest.find('[') {
        let after = &rest[start + 1..];
        let digits = after.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').take(MAX_COLOUR).count();
        let ends = digits > 0 && after[digits..].starts_with('m');
        let keep = if ends { start } else { start + 1 };
        out.push_str(&rest[..keep]);
        rest = if ends { &after[digits + 1..] } else { after };
        found |= ends;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// Escape sequences (CSI and OSC) and other control characters are dropped; a no-break space becomes a space.
fn without_controls(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{a0}' => out.push(' '),
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next_if(|c| matches!(c, '[' | ']' | '(')) {
        Some('[') => {
            // Parameters end with a letter or one of a few signs.
            while let Some(c) = chars.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')) {
                debug_assert!(!c.is_control());
            }
            chars.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
        }
        Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
        Some(_) => {
            chars.next();
        }
        None => {}
    }
}

/// `node-7:` before every line, as parallel shells print it. Not where only some lines have it.
fn common_prefix(lines: &[Cow<'_, str>]) -> Option<String> {
    let mut filled = lines.iter().filter(|line| !line.trim().is_empty());
    let (word, _) = filled.next()?.split_once(':')?;
    let prefix = format!("{word}:");
    let plain = !word.is_empty() && word.len() <= 64 && !word.contains([' ', '\t', '\'']);
    let rest: Vec<_> = filled.take(COMPARED).collect();
    let all = lines.iter().filter(|line| !line.trim().is_empty()).all(|line| line.starts_with(&prefix));
    (plain && rest.len() >= 3 && all).then_some(prefix)
}

/// Lines of a text that are read; a file that holds more is no capture of one node.
const MAX_LINES: usize = 2_000_000;
/// Bytes of a line that are read: a row of a matrix of 256 devices has 2,000.
const MAX_LINE: usize = 65_536;
/// Digits of a colour.
const MAX_COLOUR: usize = 12;
/// Marks that are stripped from one line.
const MAX_STAMPS: usize = 4;
/// Lines that make sure that a prefix is common.
const COMPARED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> Vec<String> {
        lines(text).into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn escapes_quotes_and_stamps_are_stripped() {
        assert_eq!(cleaned("\u{1b}[4m\tGPU0\u{1b}[0m\r\n"), ["\tGPU0"]);
        assert_eq!(cleaned("[4m\tGPU0\tGPU1[0m"), ["\tGPU0\tGPU1"]);
        assert_eq!(cleaned("> GPU0 X"), ["GPU0 X"]);
        assert_eq!(cleaned("2026-01-02T03:04:05.6Z stdout F GPU0\t X"), ["GPU0\t X"]);
        assert_eq!(cleaned("[1,0]<stdout>: CA 'mlx5_0'"), ["CA 'mlx5_0'"]);
        assert_eq!(cleaned("\u{1b}]0;title\u{7}CA"), ["CA"]);
    }

    #[test]
    fn a_name_before_every_line_is_stripped_and_a_key_is_not() {
        assert_eq!(cleaned("n1: a\nn1: b\n\nn1: c\nn1: d"), ["a", "b", "", "c", "d"]);
        assert_eq!(
            cleaned("state: a\nstate: b\nrate: c\nstate: d"),
            ["state: a", "state: b", "rate: c", "state: d"]
        );
    }

    #[test]
    fn addresses_and_brackets_of_tools_stay() {
        for line in ["0000:19:00.0|0", "18:00.0 3D controller", "3    1[  ] ==( 4X", "00000000:18:00.0, 1"] {
            assert_eq!(cleaned(line), [line]);
        }
    }
}
