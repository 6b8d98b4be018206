//! What the bindings of all worlds have in common, written once.

/// Implements the shared interfaces of a world for its `Component`, and its error conversion.
#[doc(hidden)]
#[macro_export]
macro_rules! __shared {
    ($policy:path) => {
        const _: () = {
            use $policy as policy;

            impl From<$crate::PluginError> for policy::types::PluginError {
                fn from(error: $crate::PluginError) -> Self {
                    match error {
                        $crate::PluginError::InvalidConfig(text) => Self::InvalidConfig(text),
                        $crate::PluginError::InvalidInput(text) => Self::InvalidInput(text),
                        $crate::PluginError::Unsupported(text) => Self::Unsupported(text),
                        $crate::PluginError::Internal(text) => Self::Internal(text),
                    }
                }
            }

            impl<P: $crate::Install> policy::metadata::Guest for Component<P> {
                fn describe() -> policy::metadata::Description {
                    policy::metadata::Description {
                        name: P::NAME.into(),
                        version: P::VERSION.into(),
                        doc: P::DOC.into(),
                    }
                }

                fn configure(
                    config: $crate::alloc::string::String,
                ) -> Result<(), policy::types::PluginError> {
                    P::install(&config).map_err(Into::into)
                }
            }
        };
    };
}

/// Implements the conversions of columns between a world's bindings and [`Column`](crate::Column). The
/// buffers move; nothing is copied.
#[doc(hidden)]
#[macro_export]
macro_rules! __columns {
    ($columns:path) => {
        const _: () = {
            use $columns as wire;

            impl From<wire::VarBytes> for $crate::VarBytes {
                fn from(values: wire::VarBytes) -> Self {
                    Self { offsets: values.offsets, data: values.data }
                }
            }

            impl From<$crate::VarBytes> for wire::VarBytes {
                fn from(values: $crate::VarBytes) -> Self {
                    Self { offsets: values.offsets, data: values.data }
                }
            }

            impl From<wire::Column> for $crate::Column {
                fn from(column: wire::Column) -> Self {
                    let values = match column.values {
                        wire::Values::S64(values) => $crate::Values::S64(values),
                        wire::Values::S32(values) => $crate::Values::S32(values),
                        wire::Values::F64(values) => $crate::Values::F64(values),
                        wire::Values::F32(values) => $crate::Values::F32(values),
                        wire::Values::U8(values) => $crate::Values::U8(values),
                        wire::Values::Bits(bytes) => $crate::Values::Bits(bytes),
                        wire::Values::Text(values) => $crate::Values::Text(values.into()),
                        wire::Values::Binary(values) => $crate::Values::Binary(values.into()),
                    };
                    Self { values, validity: column.validity }
                }
            }

            impl From<$crate::Column> for wire::Column {
                fn from(column: $crate::Column) -> Self {
                    let values = match column.values {
                        $crate::Values::S64(values) => wire::Values::S64(values),
                        $crate::Values::S32(values) => wire::Values::S32(values),
                        $crate::Values::F64(values) => wire::Values::F64(values),
                        $crate::Values::F32(values) => wire::Values::F32(values),
                        $crate::Values::U8(values) => wire::Values::U8(values),
                        $crate::Values::Bits(bytes) => wire::Values::Bits(bytes),
                        $crate::Values::Text(values) => wire::Values::Text(values.into()),
                        $crate::Values::Binary(values) => wire::Values::Binary(values.into()),
                    };
                    Self { values, validity: column.validity }
                }
            }
        };
    };
}

/// Implements `Install` for a plugin and exports a world's component over it.
#[doc(hidden)]
#[macro_export]
macro_rules! __install {
    ($plugin:ident) => {
        impl $crate::Install for $plugin {
            fn slot() -> &'static $crate::Slot<Self> {
                static SLOT: $crate::Slot<$plugin> = $crate::Slot::empty();
                &SLOT
            }
        }
    };
}
