//! Flags for the options in the library's tables, which give their names, help, values and defaults.

use crate::failure::{Failure, Outcome};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use tiepoint::collection::CollectionOptions;
use tiepoint::feature::sift::SiftOptions;
use tiepoint::feature::surf::SurfOptions;
use tiepoint::geometry::RobustOptions;
use tiepoint::image::ReadOptions;
use tiepoint::matching::MatchOptions;
use tiepoint::options::{Field, Kind, OptionTable, Value};
use tiepoint::stereo::StereoOptions;

/// Which options of a table a command has, and with which defaults.
pub(crate) trait Flags: Clone + Send + Sync + 'static {
    type Table: OptionTable;

    const HEADING: &'static str;

    /// Options for which the command has no flag, or a flag of its own.
    const WITHOUT: &'static [&'static str] = &[];

    /// The options when no flag is given.
    fn start() -> Self::Table;

    /// Presets that replace these defaults, by name.
    fn presets() -> Vec<(&'static str, Self::Table)> {
        Vec::new()
    }

    /// The fields that are flags.
    fn fields() -> Vec<Field> {
        let is_flag = |field: &Field| field.flag != "-" && !Self::WITHOUT.contains(&field.field);
        Self::start().fields().into_iter().filter(is_flag).collect()
    }
}

/// Flags of all options of a table, from its defaults or from `start`.
macro_rules! flags {
    ($(#[doc = $about:literal])* $name:ident: $table:ty, $heading:literal) => {
        flags! { $(#[doc = $about])* $name: $table, $heading, <$table>::default() }
    };
    ($(#[doc = $about:literal])* $name:ident: $table:ty, $heading:literal, $start:expr $(, { $($more:tt)* })?) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name;

        impl $crate::arguments::table::Flags for $name {
            type Table = $table;
            const HEADING: &'static str = $heading;

            fn start() -> $table {
                $start
            }

            $($($more)*)?
        }
    };
}
pub(super) use flags;

/// The options of a table, with those given on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Given<F: Flags> {
    given: Vec<(Field, Value)>,
    options: Box<F::Table>,
}

impl<F: Flags> Given<F> {
    pub(crate) fn is_any(&self) -> bool {
        !self.given.is_empty()
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.given.iter().any(|(given, _)| given.field == field)
    }

    /// The same options, for the flags of another command with other defaults.
    pub(crate) fn with_defaults_of<G: Flags<Table = F::Table>>(&self) -> Given<G> {
        let own = F::fields().into_iter().filter(|field| !self.has(field.field));
        let own = own.map(|field| (field.clone(), field.default));
        let given = own.chain(self.given.iter().cloned()).collect();
        Given { given, options: self.options.clone() }
    }

    /// The defaults, with the values that are given.
    pub(crate) fn options(&self) -> F::Table {
        (*self.options).clone()
    }

    /// `options`, with the values that are given.
    pub(crate) fn on(&self, mut options: F::Table) -> Outcome<F::Table> {
        for (field, value) in &self.given {
            options.set(field.name, value)?;
        }
        Ok(options)
    }
}

impl<F: Flags> Args for Given<F> {
    fn augment_args(command: Command) -> Command {
        let fields = F::fields();
        fields.iter().fold(command, |command, field| {
            let default = default_of::<F>(field);
            command.arg(argument(field, &field.help, &default).help_heading(F::HEADING))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<F: Flags> FromArgMatches for Given<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given =
            F::fields().into_iter().filter_map(|field| given(matches, &field).map(|value| (field, value)));
        let mut given = Self { given: given.collect(), options: Box::new(F::start()) };
        let refused = |failure: Failure| clap::Error::raw(clap::error::ErrorKind::ValueValidation, failure);
        *given.options = given.on(F::start()).map_err(refused)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A default as the help shows it, with the defaults of presets that differ.
pub(super) fn default_of<F: Flags>(field: &Field) -> String {
    let first = shown(field, &field.default);
    if field.field == "preset" {
        return first;
    }
    let others = F::presets().into_iter().filter_map(|(name, table)| Some((name, table.get(field.name)?)));
    let others = others.filter(|(_, value)| *value != field.default);
    others.fold(first, |all, (name, value)| format!("{all}; preset {name}: {}", shown(field, &value)))
}

fn shown(field: &Field, value: &Value) -> String {
    match value {
        Value::Integer(value) if field.unit == "BYTES" && value % (1 << 20) == 0 => {
            if value % (1 << 30) == 0 { format!("{}G", value >> 30) } else { format!("{}M", value >> 20) }
        }
        other => other.to_string(),
    }
}

/// A field as an argument of the command.
pub(super) fn argument(field: &Field, help: &str, default: &str) -> Arg {
    let (flag, is_off) = field.switch();
    let value_name = if field.unit.is_empty() { flag.to_uppercase() } else { field.unit.to_owned() };
    let argument = Arg::new(flag.clone()).long(flag);
    let help = help.trim_end_matches('.');
    let default = (default != "none").then(|| format!("default: {default}"));
    let notes = [(!field.allowed.is_empty()).then(|| field.allowed.clone()), default];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let noted = if notes.is_empty() { help.to_owned() } else { format!("{help} [{}]", notes.join("; ")) };
    match &field.kind {
        Kind::Bool if is_off => argument.action(ArgAction::SetTrue).help(field.without),
        Kind::Bool => argument.action(ArgAction::SetTrue).help(help.to_owned()),
        Kind::Name(names) => {
            let values = names.iter().map(|(name, help)| PossibleValue::new(*name).help(*help));
            argument.value_parser(PossibleValuesParser::new(values)).value_name(value_name).help(noted)
        }
        Kind::Path => argument.value_name("PATH").help(help.to_owned()),
        Kind::Integer | Kind::Number => {
            argument.value_name(value_name).allow_negative_numbers(true).help(noted)
        }
    }
}

/// The value of a field on the command line.
pub(super) fn given(matches: &ArgMatches, field: &Field) -> Option<Value> {
    let (flag, is_off) = field.switch();
    match field.kind {
        Kind::Bool => {
            let is_given = matches.try_get_one::<bool>(&flag).ok().flatten().is_some_and(|given| *given);
            is_given.then_some(Value::Bool(!is_off))
        }
        Kind::Integer | Kind::Number | Kind::Name(_) | Kind::Path => {
            let text = matches.try_get_one::<String>(&flag).ok().flatten();
            text.map(|text| Value::Text(text.clone()))
        }
    }
}

/// The flag, without dashes, of an option in one of the library's tables.
pub(super) fn flag_of(option: &str) -> Option<String> {
    let tables = [
        SiftOptions::default().fields(),
        SurfOptions::default().fields(),
        MatchOptions::default().fields(),
        RobustOptions::default().fields(),
        StereoOptions::default().fields(),
        CollectionOptions::default().fields(),
        ReadOptions::default().fields(),
    ];
    let field = tables.into_iter().flatten().find(|field| field.field == option && field.flag != "-");
    field.map(|field| field.switch().0)
}
