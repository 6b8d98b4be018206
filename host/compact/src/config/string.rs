//! The string form: `<filter>,<aggregation>`, either part empty.
//!
//! ```text
//! config := [filter] ["," [fold {"," fold}]]      the comma may be left out only after a filter
//! filter := "ageoff" "=" name "," period
//! fold   := name "=" ("sum" | "count" | "min" | "max")
//! name   := "'" {any character, "''" for a quote} "'" | [A-Za-z_] {[A-Za-z0-9_]}
//! period := digits | "'" digits "'"               seconds, at most 2^63 − 1
//! ```
//!
//! Keywords are read in any case, names exactly as written. Blanks may surround every token. No
//! part is ever skipped: what does not fit is an error that says where and what was expected.

use super::{ChainConfig, ColumnFold, FilterSpec, Fold, NullRule, Step, SyntaxError};

const AGE_OFF: &str = "ageoff";

/// Parses the string form of a chain.
///
/// # Errors
/// Returns the first place that does not follow the grammar, and what was expected there.
pub fn parse_string_form(text: &str) -> Result<ChainConfig, SyntaxError> {
    let mut cursor = Cursor { text, position: 0 };
    let mut steps = Vec::new();
    if let Some(filter) = cursor.filter()? {
        steps.push(Step::Filter(filter));
    }
    if cursor.at_end() {
        return Ok(ChainConfig { steps });
    }
    cursor.comma()?;
    if cursor.at_end() {
        return Ok(ChainConfig { steps });
    }
    steps.push(Step::Aggregate(cursor.folds()?));
    Ok(ChainConfig { steps })
}

/// A name as spelled, with the place where it begins.
struct Name {
    text: String,
    position: usize,
    is_quoted: bool,
}

impl Name {
    fn is_keyword(&self, keyword: &str) -> bool {
        !self.is_quoted && self.text.eq_ignore_ascii_case(keyword)
    }
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl Cursor<'_> {
    fn filter(&mut self) -> Result<Option<FilterSpec>, SyntaxError> {
        self.skip_blanks();
        let position = self.position;
        if matches!(self.peek(), None | Some(',')) {
            return Ok(None);
        }
        let no_filter = SyntaxError::NoFilterOrComma { position, rest: self.excerpt(position) };
        let Some(name) = self.word() else { return Err(no_filter) };
        if !self.eat('=') {
            return Err(no_filter);
        }
        if name.is_keyword(AGE_OFF) {
            return self.age_off().map(Some);
        }
        self.skip_blanks();
        match self.word() {
            Some(fold) if Fold::in_string_form(&fold.text).is_some() => Err(no_filter),
            _ => Err(SyntaxError::UnknownFilter { position, filter: name.text }),
        }
    }

    fn age_off(&mut self) -> Result<FilterSpec, SyntaxError> {
        let Some(column) = self.name()? else {
            return Err(SyntaxError::IncompleteAgeOff {
                position: self.position,
                missing: "column",
            });
        };
        let no_period = |position| SyntaxError::IncompleteAgeOff { position, missing: "period" };
        if !self.eat(',') {
            return Err(no_period(self.position));
        }
        self.skip_blanks();
        let position = self.position;
        let period = match self.peek() {
            None | Some(',') => return Err(no_period(position)),
            Some('\'') => self.quoted()?.text,
            Some(_) => {
                let rest = &self.text[position..];
                let end = rest.find(',').unwrap_or(rest.len());
                self.position += end;
                rest[..end].trim_end().to_owned()
            }
        };
        // `parse` alone would take a sign.
        let is_digits = period.bytes().all(|byte| byte.is_ascii_digit());
        match period.parse::<i64>() {
            Ok(seconds) if is_digits => Ok(FilterSpec::AgeOff {
                column: column.text,
                period_seconds: seconds.unsigned_abs(),
                nulls: NullRule::Drop,
            }),
            _ => Err(SyntaxError::BadPeriod { position, period }),
        }
    }

    fn folds(&mut self) -> Result<Vec<ColumnFold>, SyntaxError> {
        let mut folds: Vec<ColumnFold> = Vec::new();
        let mut positions: Vec<usize> = Vec::new();
        loop {
            let (position, fold) = self.fold()?;
            if let Some(earlier) = folds.iter().position(|other| other.column == fold.column) {
                return Err(SyntaxError::RepeatedColumn {
                    position,
                    first: positions[earlier],
                    column: fold.column,
                });
            }
            folds.push(fold);
            positions.push(position);
            if self.at_end() {
                return Ok(folds);
            }
            let comma = self.comma()?;
            if self.at_end() {
                return Err(SyntaxError::TrailingComma { position: comma });
            }
        }
    }

    fn fold(&mut self) -> Result<(usize, ColumnFold), SyntaxError> {
        let Some(column) = self.name()? else { return Err(self.no_fold()) };
        if !self.eat('=') {
            return Err(self.no_fold());
        }
        self.skip_blanks();
        let position = self.position;
        let no_fold = self.no_fold();
        let fold = self.word();
        if let Some(native) = fold.as_ref().and_then(|name| Fold::in_string_form(&name.text)) {
            return Ok((column.position, ColumnFold { column: column.text, fold: native }));
        }
        if column.is_keyword(AGE_OFF) {
            return Err(SyntaxError::MisplacedFilter { position: column.position });
        }
        match fold {
            Some(name) => {
                Err(SyntaxError::UnknownFold { position, fold: name.text, column: column.text })
            }
            None => Err(no_fold),
        }
    }

    fn no_fold(&mut self) -> SyntaxError {
        self.skip_blanks();
        SyntaxError::NoFold { position: self.position, found: self.found() }
    }

    /// Reads a name, quoted or bare, if one stands here.
    fn name(&mut self) -> Result<Option<Name>, SyntaxError> {
        self.skip_blanks();
        if self.peek() != Some('\'') {
            return Ok(self.word());
        }
        let name = self.quoted()?;
        if name.text.is_empty() {
            return Err(SyntaxError::EmptyName { position: name.position });
        }
        Ok(Some(name))
    }

    fn quoted(&mut self) -> Result<Name, SyntaxError> {
        let position = self.position;
        let mut text = String::new();
        let mut at = position + 1;
        while let Some(length) = self.text[at..].find('\'') {
            text.push_str(&self.text[at..at + length]);
            at += length + 1;
            if !self.text[at..].starts_with('\'') {
                self.position = at;
                return Ok(Name { text, position, is_quoted: true });
            }
            text.push('\'');
            at += 1;
        }
        Err(SyntaxError::UnclosedQuote { position })
    }

    fn word(&mut self) -> Option<Name> {
        let position = self.position;
        let rest = &self.text[position..];
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.position += end;
        Some(Name { text: rest[..end].to_owned(), position, is_quoted: false })
    }

    /// Takes a comma and returns where it stood.
    fn comma(&mut self) -> Result<usize, SyntaxError> {
        self.skip_blanks();
        let position = self.position;
        if self.eat(',') {
            return Ok(position);
        }
        Err(SyntaxError::NoComma { position, found: self.found() })
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let is_here = self.peek() == Some(wanted);
        if is_here {
            self.position += wanted.len_utf8();
        }
        is_here
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.position == self.text.len()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
    }

    /// Names the token at the cursor for an error message.
    fn found(&self) -> String {
        let rest = &self.text[self.position..];
        let Some(first) = rest.chars().next() else { return "end of text".to_owned() };
        let length = match first {
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        format!("\"{}\"", self.excerpt_of(&rest[..length]))
    }

    fn excerpt(&self, position: usize) -> String {
        self.excerpt_of(self.text[position..].trim_end())
    }

    /// Shortens what a message quotes, so that a pasted document does not fill the screen.
    fn excerpt_of(&self, text: &str) -> String {
        const CHARACTERS_MAX: usize = 60;
        match text.char_indices().nth(CHARACTERS_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        }
    }
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::{ChainConfig, ColumnFold, FilterSpec, Fold, NullRule, Step, parse_string_form};

    fn age_off(column: &str, period_seconds: u64) -> Step {
        let column = column.to_owned();
        Step::Filter(FilterSpec::AgeOff { column, period_seconds, nulls: NullRule::Drop })
    }

    fn aggregate(folds: &[(&str, Fold)]) -> Step {
        let fold = |(column, fold): &(&str, Fold)| ColumnFold {
            column: (*column).to_owned(),
            fold: fold.clone(),
        };
        Step::Aggregate(folds.iter().map(fold).collect())
    }

    #[track_caller]
    fn check(text: &str, steps: &[Step]) {
        let parsed = parse_string_form(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.steps, steps, "{text}");
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str, marked: &str) {
        let error = parse_string_form(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
        assert_eq!(error.caret(text), format!("{text}\n{marked}"), "{text}");
    }

    #[test]
    fn either_part_may_be_empty() {
        check("", &[]);
        check(" , ", &[]);
        check("ageoff='updated_at','86400',", &[age_off("updated_at", 86_400)]);
        check("ageoff='updated_at','86400'", &[age_off("updated_at", 86_400)]);
        check(",'q'=SUM,'p'=MAX", &[aggregate(&[("q", Fold::Sum), ("p", Fold::Max)])]);
        check(
            "ageoff='ts','86400','a'=sum,'b'=min",
            &[age_off("ts", 86_400), aggregate(&[("a", Fold::Sum), ("b", Fold::Min)])],
        );
    }

    #[test]
    fn keywords_are_read_in_any_case_and_names_are_not_folded() {
        check(
            " AgeOff = TimeStamp , 0 , 'Other@Key' = Count,B=mAx ",
            &[age_off("TimeStamp", 0), aggregate(&[("Other@Key", Fold::Count), ("B", Fold::Max)])],
        );
        // Two columns that differ in case only are two columns.
        check(",b=sum,B=sum", &[aggregate(&[("b", Fold::Sum), ("B", Fold::Sum)])]);
    }

    #[test]
    fn quoted_names_hold_quotes_commas_and_keywords() {
        check(
            ",'it''s, a=sum'=min,'五'=sum,ageoff=max,'sum'=sum",
            &[aggregate(&[
                ("it's, a=sum", Fold::Min),
                ("五", Fold::Sum),
                ("ageoff", Fold::Max),
                ("sum", Fold::Sum),
            ])],
        );
        check("ageoff='a''','9223372036854775807'", &[age_off("a'", i64::MAX.unsigned_abs())]);
    }

    #[test]
    fn aggregation_without_leading_comma_is_refused_and_not_dropped() {
        let text = "'a'=sum";
        let expected =
            "expected a filter or \",\" at position 0: write \",'a'=sum\" when there is no filter";
        check_error(text, expected, "^");
        check_error(
            "  a = sum",
            "expected a filter or \",\" at position 2: write \",a = sum\" when there is no filter",
            "  ^",
        );
        check_error(
            "sum(a)",
            "expected a filter or \",\" at position 0: write \",sum(a)\" when there is no filter",
            "^",
        );
    }

    #[test]
    fn faults_in_the_filter_say_where_and_what() {
        check_error(
            "ageof='t','1',",
            "unknown filter \"ageof\" at position 0: the string form knows only ageoff",
            "^",
        );
        let no_period = |position| {
            format!(
                "ageoff needs a column and a period in seconds: the period is missing at position {position}"
            )
        };
        check_error("ageoff='t'", &no_period(10), "          ^");
        check_error("ageoff='t',,", &no_period(11), "           ^");
        check_error(
            "ageoff=,1",
            "ageoff needs a column and a period in seconds: the column is missing at position 7",
            "       ^",
        );
        for period in ["1.5", "-1", "+1", "1d", "", "9223372036854775808", "1'a"] {
            let quoted = format!("ageoff='t','{}',", period.replace('\'', "''"));
            let expected = format!(
                "ageoff period \"{period}\" at position 11 is not a whole number of seconds from 0 to 9223372036854775807"
            );
            check_error(&quoted, &expected, "           ^");
        }
        check_error(
            "ageoff='t','1' 'a'=sum",
            "expected \",\" at position 15, found \"'a'\"",
            "               ^",
        );
        check_error("ageoff='','1'", "column name at position 7 is empty", "       ^");
        check_error("ageoff='t','1", "quote opened at position 11 is not closed", "           ^");
    }

    #[test]
    fn a_second_filter_is_refused() {
        let expected = |position| {
            format!(
                "expected 'column'=op at position {position}, found a filter: only one filter is allowed, and it comes first; use [[iterator]] in TOML for more"
            )
        };
        check_error("ageoff='a','1',ageoff='b','2'", &expected(15), "               ^");
        check_error(",ageoff='b','2'", &expected(1), " ^");
    }

    #[test]
    fn faults_in_the_aggregation_say_where_and_what() {
        check_error(
            ",'a'=avg",
            "unknown aggregation \"avg\" for column \"a\" at position 5: know sum, count, min, max",
            "     ^",
        );
        check_error(",'a'=", "expected 'column'=op at position 5, found end of text", "     ^");
        check_error(",'a'sum", "expected 'column'=op at position 4, found \"sum\"", "    ^");
        check_error(",sum(a)", "expected 'column'=op at position 4, found \"(\"", "    ^");
        check_error(",,", "expected 'column'=op at position 1, found \",\"", " ^");
        check_error(",1=sum", "expected 'column'=op at position 1, found \"1\"", " ^");
        check_error(",a='sum'", "expected 'column'=op at position 3, found \"'sum'\"", "   ^");
        check_error(
            ",'a'=sum,",
            "expected 'column'=op after \",\" at position 8, found end of text",
            "        ^",
        );
        check_error(",'a'=sum;'b'=sum", "expected \",\" at position 8, found \";\"", "        ^");
        check_error(
            ",'a'=sum,a=max",
            "column \"a\" has two aggregations (positions 1 and 9)",
            "         ^",
        );
    }

    #[test]
    fn caret_stands_under_the_place_in_its_own_line() {
        let text = ",'五'=sum,\n\t'b'=avg,\n'c'=sum";
        let error = parse_string_form(text).expect_err("avg is no aggregation");
        assert_eq!(error.caret(text), "\t'b'=avg,\n\t    ^");
        // The position is in bytes; the caret counts characters.
        let text = ",'五'=avg";
        let error = parse_string_form(text).expect_err("avg is no aggregation");
        assert_eq!((error.position(), error.caret(text).as_str()), (7, ",'五'=avg\n     ^"));
    }

    #[test]
    fn chains_that_the_form_cannot_say_are_not_written() {
        let keep =
            FilterSpec::AgeOff { column: "t".into(), period_seconds: 1, nulls: NullRule::Keep };
        let plugin = Fold::Plugin { name: "p".into(), config_json: "{}".into() };
        for steps in [
            vec![Step::Filter(keep)],
            vec![age_off("t", u64::MAX)],
            vec![age_off("t", 1), age_off("t", 2)],
            vec![aggregate(&[("a", plugin)])],
            vec![aggregate(&[])],
        ] {
            assert_eq!(ChainConfig { steps }.to_string_form(), None);
        }
    }

    fn chains() -> impl Strategy<Value = ChainConfig> {
        let name = || prop_oneof!["[a-zA-Z' ,=五]{1,6}", "[a-z]{1,3}"];
        let fold =
            prop_oneof![Just(Fold::Sum), Just(Fold::Count), Just(Fold::Min), Just(Fold::Max)];
        let filter = proptest::option::of((name(), 0..=i64::MAX.unsigned_abs()));
        let folds = proptest::collection::btree_map(name(), fold, 0..4);
        (filter, folds).prop_map(|(filter, folds)| {
            let mut steps: Vec<Step> = filter
                .map(|(column, period_seconds)| age_off(&column, period_seconds))
                .into_iter()
                .collect();
            if !folds.is_empty() {
                let folds = folds.into_iter().map(|(column, fold)| ColumnFold { column, fold });
                steps.push(Step::Aggregate(folds.collect()));
            }
            ChainConfig { steps }
        })
    }

    proptest! {
        #[test]
        fn written_chains_parse_back_to_themselves(chain in chains()) {
            let text = chain.to_string_form().expect("the form can say it");
            assert_eq!(parse_string_form(&text), Ok(chain));
        }

        #[test]
        fn no_text_panics_and_every_error_has_a_caret(
            text in "([aA]geoff|sum|max|'|''|,|=|[0-9]|a|五| |\n|\t|;){0,12}",
            noise in any::<String>(),
        ) {
            for text in [text, noise] {
                if let Err(error) = parse_string_form(&text) {
                    assert!(error.position() <= text.len());
                    assert!(error.caret(&text).ends_with('^'));
                }
            }
        }
    }
}
