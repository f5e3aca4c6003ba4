import { inspectSql } from '../../safety/sql/inspect.ts'
import type { SqlNames } from '../../safety/sql/postgres-names.ts'
import type { AskDatabase } from './connect.ts'

/**
 * Looks up the names in a statement on its server. The judge knows built-in functions, operators
 * and views by name, but a site may have code with the same names that writes.
 */

/** Selects objects outside of extensions, because an extension's names mean the same everywhere. */
const isOfSite = (catalogue: string, oid: string): string =>
  `not exists (select 1 from pg_depend d where d.classid = '${catalogue}'::regclass and d.objid = ${oid} and d.deptype = 'e')`

const texts = (at: number): string => `(select json_array_elements_text($${at}::json))`

/** Looks up names: $1 relations, $2 functions, $3 names behind a dot, $4 operators, $5 types. */
const catalogueSql = `
  with recursive named as (
    select distinct to_regclass(r)::oid as oid from json_array_elements_text($1::json) r where to_regclass(r) is not null),
  used as (
    select oid from named
    union
    select behind.oid from used u cross join lateral (
      select d.refobjid as oid from pg_rewrite w join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid and d.refclassid = 'pg_class'::regclass
        where w.ev_class = u.oid and w.ev_type = '1'
      union all select d.refobjid from pg_policy y join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = y.oid and d.refclassid = 'pg_class'::regclass
        where y.polrelid = u.oid
      union all select i.inhrelid from pg_inherits i where i.inhparent = u.oid) behind),
  -- Types of columns, of what they are made of, and of what rules and policies turn values into.
  typed as (
    select a.atttypid as oid from used join pg_attribute a on a.attrelid = used.oid and a.attnum > 0 and not a.attisdropped
    union
    select d.refobjid from used join (select ev_class as rel, oid, 'pg_rewrite'::regclass as catalogue from pg_rewrite
        union all select polrelid, oid, 'pg_policy'::regclass from pg_policy) rule on rule.rel = used.oid
      join pg_depend d on d.classid = rule.catalogue and d.objid = rule.oid and d.refclassid = 'pg_type'::regclass
    union
    select made.oid from typed join pg_type t on t.oid = typed.oid
      cross join lateral (select t.typelem as oid where t.typelem <> 0 union all select t.typbasetype where t.typbasetype <> 0
        union all select r.rngsubtype from pg_range r where r.rngtypid = t.oid
        union all select a.atttypid from pg_attribute a where t.typrelid <> 0 and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) made),
  site as (
    select c.oid, c.relkind, c.reltype, c.oid::regclass::text as name from used join pg_class c on c.oid = used.oid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname not in ('pg_catalog', 'information_schema') and ${isOfSite('pg_class', 'c.oid')}),
  named_columns as (
    select a.attname::text as name, t.oid as type, t.typcategory in ('N', 'B', 'D', 'T', 'I', 'E') or t.typname in ('uuid', 'pg_lsn', 'xid', 'xid8') as is_plain
      from named join pg_attribute a on a.attrelid = named.oid and not a.attisdropped join pg_type t on t.oid = a.atttypid),
  cast_to as (select to_regtype(t)::oid as oid from (select ${texts(5)} as t union select ${texts(2)}) each where t !~ '[^a-z0-9_. ]'),
  -- What the values of the statement may be: by columns, functions, operators, constants.
  cast_from as (
    select type as oid from named_columns union select oid from typed union select oid from cast_to
    union select p.prorettype from pg_proc p where p.proname::text in ${texts(2)} or 'pg_catalog.' || p.proname in ${texts(2)}
    union select o.oprresult from pg_operator o where o.oprname::text in ${texts(4)} or 'pg_catalog.' || o.oprname in ${texts(4)}
    union select unnest(array['int4', 'int8', 'numeric', 'text', 'bool', 'unknown']::regtype[])::oid),
  operands as (
    select t.oid from (select oid from typed union select reltype from site) each join pg_type t on t.oid = each.oid or t.typelem = each.oid)
  select
    (select json_agg(distinct p.oid::regprocedure::text) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where p.oid >= 16384 and n.nspname = any (current_schemas(true)) and ${isOfSite('pg_proc', 'p.oid')}
        and (p.proname::text in ${texts(2)} or n.nspname || '.' || p.proname in ${texts(2)}
          or (p.proname::text in ${texts(3)} and p.pronargs - p.pronargdefaults <= 1))) as functions,
    (select json_agg(distinct o.oid::regoperator::text) from pg_operator o join pg_namespace n on n.oid = o.oprnamespace
      where o.oid >= 16384 and n.nspname = any (current_schemas(true)) and ${isOfSite('pg_operator', 'o.oid')}
        and (o.oprname::text in ${texts(4)} or n.nspname || '.' || o.oprname in ${texts(4)})
        and (greatest(o.oprleft, o.oprright) < 16384 or exists (select from operands m where m.oid >= 16384 and m.oid in (o.oprleft, o.oprright)))) as operators,
    (select json_agg(distinct format('%s calls %s', s.name, p.oid::regprocedure)) from site s
      join (select ev_class as rel, oid, 'pg_rewrite'::regclass as catalogue from pg_rewrite union all select polrelid, oid, 'pg_policy'::regclass from pg_policy) rule on rule.rel = s.oid
      join pg_depend d on d.classid = rule.catalogue and d.objid = rule.oid and d.refclassid = 'pg_proc'::regclass
      join pg_proc p on p.oid = d.refobjid and p.oid >= 16384 and ${isOfSite('pg_proc', 'p.oid')}) as behind,
    (select json_agg(distinct format('%s uses %s', s.name, o.oid::regoperator)) from site s
      join (select ev_class as rel, oid, 'pg_rewrite'::regclass as catalogue from pg_rewrite union all select polrelid, oid, 'pg_policy'::regclass from pg_policy) rule on rule.rel = s.oid
      join pg_depend d on d.classid = rule.catalogue and d.objid = rule.oid and d.refclassid = 'pg_operator'::regclass
      join pg_operator o on o.oid = d.refobjid and o.oid >= 16384 and ${isOfSite('pg_operator', 'o.oid')}) as behind_operators,
    (select json_agg(s.name) from site s where s.relkind = 'f') as foreign_tables,
    (select json_agg(json_build_object('name', s.name, 'sql', pg_get_viewdef(s.oid), 'isStored', s.relkind = 'm')) from site s where s.relkind in ('v', 'm')) as views,
    (select json_agg(distinct format('(%s AS %s) runs %s%s', format_type(k.castsource, null), format_type(k.casttarget, null), p.oid::regprocedure,
          case when k.castcontext = 'i' then ' wherever the one stands for the other: CREATE CAST without AS IMPLICIT would need it written' else '' end)) from pg_cast k join pg_proc p on p.oid = k.castfunc
      where k.castfunc >= 16384 and ${isOfSite('pg_proc', 'p.oid')}
        and ((k.castsource < 16384 and k.casttarget < 16384 and k.castsource in (select oid from cast_from)
            and (k.castcontext = 'i' or k.casttarget in (select oid from cast_to))) or exists (select 1 from site s left join pg_attribute a on a.attrelid = s.oid and a.attnum > 0 where k.castsource in (a.atttypid, s.reltype) or k.casttarget = a.atttypid))) as casts,
    (select json_agg(distinct format('%s calls %s', format_type(c.contypid, null), p.oid::regprocedure)) from typed join pg_constraint c on c.contypid = typed.oid
      join pg_depend d on d.classid = 'pg_constraint'::regclass and d.objid = c.oid and d.refclassid = 'pg_proc'::regclass
      join pg_proc p on p.oid = d.refobjid and p.oid >= 16384 and ${isOfSite('pg_proc', 'p.oid')}) as domains,
    (select json_agg(json_build_object('relation', s.name, 'column', a.attname, 'type', format_type(a.atttypid, null))) from site s join named on named.oid = s.oid
      join pg_attribute a on a.attrelid = s.oid and a.attnum > 0 and not a.attisdropped) as columns,
    (select json_agg(name) from (select name from named_columns group by name having bool_and(is_plain)) each) as plain`

export type SiteColumn = { relation: string; column: string; type: string }
/**
 * `views` has the definitions of the site's views. `plain` lists columns that contain no text under
 * any name.
 */
type Catalogue = { refusal: string | null; columns: SiteColumn[]; views: string[]; plain: string[] }

/**
 * Looks up the names. Refuses the statement if a name belongs to an object of the site that may
 * write.
 */
export async function readCatalogue(ask: AskDatabase, names: SqlNames): Promise<Catalogue> {
  const values = [names.relations, names.functions, names.fields, names.operators, names.types].map((each) =>
    JSON.stringify(each),
  )
  const { rows } = await ask({ sql: catalogueSql, values })
  const list = <T = string>(name: string): T[] => JSON.parse(String(rows[0]?.[name] ?? '[]')) ?? []
  const [fn] = list('functions')
  const [operator] = list('operators')
  const [behind] = [...list('behind'), ...list('behind_operators')]
  const [foreign] = list('foreign_tables')
  const [cast] = list('casts')
  const [domain] = list('domains')
  const views = list<{ name: string; sql: string; isStored: boolean }>('views')
  const view = views.find(({ sql, isStored }) => !isStored && !inspectView(sql).readOnly)
  const refusal = fn
    ? `${fn} is a function of this site with the name of a built-in one or of a column, and may do anything: write pg_catalog.name(…) for the built-in one`
    : operator
      ? `${operator} is an operator of this site, and may do anything: write OPERATOR(pg_catalog.…) for the built-in one`
      : behind
        ? `${behind}, which is code of this site and may do anything: query a table behind it`
        : foreign
          ? `${foreign} is a table of another server: query that server`
          : cast
            ? `the cast ${cast}, which is code of this site and may do anything: leave out what may use it`
            : domain
              ? `the domain ${domain}, which is code of this site and may do anything: query another table`
              : view
                ? `the view ${view.name} is not a bounded read (${inspectView(view.sql).reason}): query a table behind it`
                : null
  return { refusal, columns: list<SiteColumn>('columns'), views: views.map(({ sql }) => sql), plain: list('plain') }
}

const inspectView = (sql: string) => inspectSql('postgres', sql)
