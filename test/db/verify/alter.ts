import { type RawBuilder, sql } from 'kysely'
import type { Trx } from '../../../db/connect.ts'

/** What the catalogue says of a column, and how another value for it is made up. */
export type Column = {
  table: string
  name: string
  type: string
  isNullable: boolean
  /** The database makes it up, and refuses any other. */
  isGenerated: boolean
  mayUpdate: boolean
  /** Values that a check constraint lists for it. */
  words: string[]
  refersTo: { table: string; column: string } | null
  isKey: boolean
}

export type Table = { name: string; columns: Column[]; mayInsert: boolean; mayDelete: boolean }

/** Every table of the product, as the role of this connection may alter it. */
export async function readCatalogue(trx: Trx): Promise<Table[]> {
  const { rows } = await sql<Column>`
    select c.table_name as "table", c.column_name as name, c.udt_name as type, c.is_nullable = 'YES' as is_nullable,
      c.is_identity = 'YES' or c.is_generated = 'ALWAYS' as is_generated,
      has_column_privilege(t.oid, c.column_name, 'update') as may_update,
      coalesce((
        select array_agg(word[1]) from pg_constraint k, regexp_matches(pg_get_constraintdef(k.oid), '''([a-z0-9_]+)''::text', 'g') word
        where k.conrelid = t.oid and k.contype = 'c' and k.conkey = array[a.attnum]), '{}') as words,
      (select jsonb_build_object('table', k.confrelid::regclass::text, 'column', f.attname)
        from pg_constraint k join pg_attribute f on f.attrelid = k.confrelid and f.attnum = k.confkey[1]
        where k.conrelid = t.oid and k.contype = 'f' and k.conkey = array[a.attnum] limit 1) as refers_to,
      exists (select from pg_index i where i.indrelid = t.oid and i.indisunique and a.attnum = any(i.indkey::int2[])) as is_key
    from information_schema.columns c
    join pg_class t on t.relname = c.table_name and t.relnamespace = 'public'::regnamespace and t.relkind = 'r'
    join pg_attribute a on a.attrelid = t.oid and a.attname = c.column_name
    where c.table_schema = 'public' order by c.table_name, c.ordinal_position`.execute(trx)
  const { rows: tables } = await sql<Omit<Table, 'columns'>>`
    select relname as name, has_table_privilege(oid, 'insert') as may_insert, has_table_privilege(oid, 'delete') as may_delete
    from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1`.execute(trx)
  return tables.map((table) => ({ ...table, columns: rows.filter((column) => column.table === table.name) }))
}

/** Other values for a column, as SQL over the row that has it. */
export function otherValues({ name, type, isNullable, words, refersTo }: Column, salt: number): RawBuilder<unknown>[] {
  const it = sql.ref(name)
  const values: RawBuilder<unknown>[] = []
  if (refersTo) {
    const { table, column } = refersTo
    values.push(sql`(select ${sql.ref(`other.${column}`)} from ${sql.table(table)} as other
      where ${sql.ref(`other.${column}`)} is distinct from ${it} order by 1 limit 1)`)
  } else if (type === 'text' && words.length > 0)
    for (const word of words) values.push(sql`case when ${it} is distinct from ${word} then ${word} end`)
  else if (type === 'text') values.push(sql`coalesce(${it}, '') || ${`x${salt % 97}`}`, sql`'U012AB3CD'`)
  else if (['int2', 'int4', 'int8', 'numeric', 'float8'].includes(type))
    values.push(sql`coalesce(${it}, 0) + 1`, sql`coalesce(${it}, 0) - 1`)
  else if (type === 'date') values.push(sql`${it} + 1`)
  else if (type === 'bool') values.push(sql`not coalesce(${it}, false)`)
  else if (type === 'timestamptz')
    values.push(
      sql`coalesce(${it}, nightshift_now()) + make_interval(secs => ${1 + (salt % 50)})`,
      sql`coalesce(${it}, nightshift_now()) - make_interval(secs => ${1 + (salt % 50)})`,
    )
  else if (type === 'jsonb')
    values.push(
      sql`case jsonb_typeof(${it}) when 'array' then ${it} || '["x"]' else coalesce(${it}, '{}'::jsonb) || '{"x": 1}' end`,
      sql`'["x"]'::jsonb`,
    )
  else if (type === '_text') values.push(sql`coalesce(${it}, '{}') || 'x'::text`)
  else if (type === 'bytea') values.push(sql`${it} || '\\x00'`)
  if (isNullable) values.push(sql`null`)
  return values
}

/** A second row like this one, under another key. */
export function copyOf(table: Table, ctid: string, salt: number): RawBuilder<unknown> {
  const columns = table.columns.filter(({ isGenerated }) => !isGenerated)
  const values = columns.map((column) => {
    const { name, isKey, words, refersTo, type } = column
    const it = sql.ref(name)
    if (!isKey || (words.length > 0 && !refersTo)) return it
    const other = type.startsWith('int') ? sql`${it} + 1000` : (otherValues(column, salt)[0] ?? it)
    return sql`case when ${it} is null then null else coalesce(${other}, ${it}) end`
  })
  return sql`insert into ${sql.table(table.name)} (${sql.join(columns.map(({ name }) => sql.ref(name)))})
    select ${sql.join(values)} from ${sql.table(table.name)} where ctid = ${ctid}::tid`
}
