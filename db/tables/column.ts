import type { ColumnType } from 'kysely'

/** Times are RFC 3339 UTC text with microseconds: `connect()` installs the parser, so that no precision is lost. */
export type Time = ColumnType<string, string | undefined, string>
export type NullableTime = ColumnType<string | null, string | null | undefined, string | null>
/** A time ahead, reckoned by the database's clock when it is written. */
export type Deadline = ColumnType<string, unknown, unknown>
export type Json<T> = ColumnType<T, string, string>
export type JsonOrDefault<T> = ColumnType<T, string | undefined, string>
