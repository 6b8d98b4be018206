//! A bound on what the parser may do.
//!
//! The parser tries what it is not sure of and takes it back; where such places nest, the tries double
//! with every level. `f(f(f(…` in PostgreSQL's grammar, or a `CAST` within a `CAST` around an error,
//! take seconds at twenty levels and years at fifty. So every expression that is begun is counted, and
//! a text that begins many times more than it has tokens is refused.

use std::{any::TypeId, cell::Cell, iter::Peekable, str::Chars};

use datafusion_sql::sqlparser::{
    ast::{ColumnOption, Expr, GranteesType, Ident, ObjectNamePart, Statement},
    dialect::{Dialect, Precedence},
    keywords::Keyword,
    parser::{Parser, ParserError},
};

/// Beginnings of expressions that each token may cost, and those that any text may.
const PER_TOKEN: usize = 20;
const AT_LEAST: usize = 2_000;

/// A dialect whose parser gives up in the end.
#[derive(Debug)]
pub(super) struct Bounded {
    inner: Box<dyn Dialect>,
    left: Cell<usize>,
}

impl Bounded {
    /// Bounds the parsing of so many tokens.
    pub(super) fn new(inner: Box<dyn Dialect>, tokens: usize) -> Self {
        Self { inner, left: Cell::new(tokens.saturating_mul(PER_TOKEN).saturating_add(AT_LEAST)) }
    }
}

/// Answers questions as the inner dialect does.
macro_rules! same {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            self.inner.$name()
        })*
    };
}

impl Dialect for Bounded {
    same! {
        supports_string_literal_backslash_escape ignores_wildcard_escapes
        supports_unicode_string_literal supports_filter_during_aggregation
        supports_window_clause_named_window_reference supports_within_after_array_aggregation
        supports_partition_by_after_order_by supports_array_join_syntax supports_group_by_expr
        supports_group_by_with_modifier supports_left_associative_joins_without_parens
        supports_outer_join_operator supports_cross_join_constraint supports_connect_by
        supports_execute_immediate supports_match_recognize supports_in_empty_list
        supports_start_transaction_modifier supports_end_transaction_modifier
        supports_named_fn_args_with_eq_operator supports_named_fn_args_with_colon_operator
        supports_named_fn_args_with_assignment_operator
        supports_named_fn_args_with_rarrow_operator supports_named_fn_args_with_expr_name
        supports_numeric_prefix supports_numeric_literal_underscores
        supports_window_function_null_treatment_arg supports_dictionary_syntax
        support_map_literal_syntax supports_lambda_functions
        supports_parenthesized_set_variables supports_comma_separated_set_assignments
        supports_update_order_by supports_select_wildcard_except convert_type_before_value
        supports_triple_quoted_string supports_trailing_commas supports_limit_comma
        supports_string_literal_concatenation supports_string_literal_concatenation_with_newline
        supports_projection_trailing_commas supports_from_trailing_commas
        supports_column_definition_trailing_commas supports_object_name_double_dot_notation
        supports_struct_literal supports_empty_projections supports_select_expr_star
        supports_from_first_select supports_from_first_insert supports_pipe_operator
        supports_user_host_grantee supports_match_against supports_select_wildcard_exclude
        supports_select_exclude supports_create_table_multi_schema_info_sources
        supports_select_modifiers describe_requires_table_keyword allow_extract_custom
        allow_extract_single_quotes supports_extract_comma_syntax
        supports_subquery_as_function_arg supports_create_view_comment_syntax
        supports_array_typedef_without_element_type supports_parens_around_table_factor
        supports_values_as_table_factor supports_dollar_placeholder
        supports_dollar_as_money_prefix supports_create_index_with_clause
        require_interval_qualifier supports_explain_with_utility_options
        supports_asc_desc_in_column_definition supports_factorial_operator
        supports_bitwise_shift_operators supports_nested_comments
        supports_multiline_comment_hints supports_eq_alias_assignment supports_try_convert
        supports_bang_not_operator supports_listen_notify supports_load_data
        supports_load_extension supports_top_before_distinct supports_boolean_literals
        supports_show_like_before_in supports_comment_on supports_create_table_select
        supports_partiql supports_constraint_keyword_without_name supports_key_column_option
        supports_table_sample_before_alias supports_insert_set supports_insert_table_function
        supports_insert_table_query supports_insert_format supports_insert_table_alias
        supports_set_stmt_without_operator supports_table_versioning
        supports_string_escape_constant supports_table_hints
        requires_single_line_comment_whitespace supports_array_typedef_with_brackets
        supports_geometric_types supports_order_by_all supports_set_names
        supports_space_separated_column_options supports_alter_column_type_using
        supports_comma_separated_drop_column_list supports_notnull_operator
        supports_data_type_signed_suffix supports_interval_options
        supports_create_table_like_parenthesized supports_semantic_view_table_factor
        supports_quote_delimited_string supports_comment_optimizer_hint
        supports_double_ampersand_operator supports_binary_kw_as_cast
        supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_select_wildcard_rename supports_select_wildcard_with_alias
        supports_optimize_table supports_install supports_detach supports_prewhere
        supports_with_fill supports_limit_by supports_interpolate supports_settings
        supports_select_format supports_comma_separated_trim supports_cte_without_as
        supports_select_item_multi_column_alias supports_xml_expressions
        supports_create_table_using supports_long_type_as_bigint
        supports_map_literal_with_angle_brackets
    }

    fn dialect(&self) -> TypeId {
        self.inner.dialect()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_delimited_identifier_start(ch)
    }

    fn is_nested_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_nested_delimited_identifier_start(ch)
    }

    fn peek_nested_delimited_identifier_quotes(
        &self,
        chars: Peekable<Chars<'_>>,
    ) -> Option<(char, Option<char>)> {
        self.inner.peek_nested_delimited_identifier_quotes(chars)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.inner.identifier_quote_style(identifier)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.inner.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.inner.is_identifier_part(ch)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        self.inner.is_custom_operator_part(ch)
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Some(Err(ParserError::RecursionLimitExceeded));
        };
        self.left.set(left);
        self.inner.parse_prefix(parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        self.inner.parse_infix(parser, expr, precedence)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        self.inner.get_next_precedence(parser)
    }

    fn get_next_precedence_default(&self, parser: &Parser<'_>) -> Result<u8, ParserError> {
        self.inner.get_next_precedence_default(parser)
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        self.inner.parse_statement(parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        self.inner.parse_column_option(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        self.inner.prec_value(prec)
    }

    fn prec_unknown(&self) -> u8 {
        self.inner.prec_unknown()
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        self.inner.is_reserved_for_identifier(kw)
    }

    fn get_reserved_keywords_for_select_item_operator(&self) -> &[Keyword] {
        self.inner.get_reserved_keywords_for_select_item_operator()
    }

    fn get_reserved_grantees_types(&self) -> &[GranteesType] {
        self.inner.get_reserved_grantees_types()
    }

    fn is_column_alias(&self, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.inner.is_column_alias(kw, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.inner.is_select_item_alias(explicit, kw, parser)
    }

    fn is_table_factor(&self, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.inner.is_table_factor(kw, parser)
    }

    fn is_table_alias(&self, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.inner.is_table_alias(kw, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.inner.is_table_factor_alias(explicit, kw, parser)
    }

    fn is_identifier_generating_function_name(
        &self,
        ident: &Ident,
        name_parts: &[ObjectNamePart],
    ) -> bool {
        self.inner.is_identifier_generating_function_name(ident, name_parts)
    }
}
