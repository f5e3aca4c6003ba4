import { randomBytes, randomInt } from 'node:crypto'

/**
 * Secrets as a site leaves them where a server shows them: in statements of every form, names of
 * programs, prepared transactions, settings.
 */

export type Planted = {
  secret: string
  /** What stands in a transaction of its own; it may fail. */
  statement?: string
  application?: string
  /** Name of a prepared transaction. */
  gid?: string
}

const word = (): string => `Zq${randomBytes(7).toString('hex')}9K`
const number = (): string => `7${randomInt(1e11, 9e11)}`

type Form = { write(secret: string): string; isNumber?: boolean }

const forms: readonly Form[] = [
  { write: (v) => `'${v}'` },
  { write: (v) => `E'it\\'s ${v}'` },
  { write: (v) => `e'\\\\${v}'` },
  { write: (v) => `U&'\\0041${v}'` },
  { write: (v) => `$$${v}$$` },
  { write: (v) => `$tag$it's ${v}$tag$` },
  { write: (v) => `$ü$${v}$ü$` },
  { write: (v) => `N'${v}'` },
  { write: (v) => `'it''s ${v}'` },
  { write: (v) => `'first'\n'${v}'` },
  { write: (v) => `text '${v}'` },
  { write: (v) => `'${v}'::text` },
  { write: (v) => `'a' /* ${v} */` },
  { write: (v) => `'a' /* is /* ${v} */ more */` },
  { write: (v) => `'a' -- ${v}\n` },
  { write: (v) => `'{"password": "${v}"}'` },
  { write: (v) => v, isNumber: true },
  { write: (v) => `-${v}.5`, isNumber: true },
  { write: (v) => `${v}e3`, isNumber: true },
  { write: (v) => `X'${v}'`, isNumber: true },
]

const places: readonly ((value: string) => string)[] = [
  (v) => `select ${v}`,
  (v) => `select count(*) from notes where body = (${v})::text`,
  (v) => `insert into notes values (${v})`,
  (v) => `with given as (select ${v} as it) select * from given`,
  (v) => `explain select ${v}`,
  (v) => `declare c${randomInt(1e6)} cursor for select ${v}`,
  (v) => `prepare p${randomInt(1e6)} as select ${v}`,
]

const statements: readonly ((secret: string) => string)[] = [
  (v) => `alter role shop password '${v}'`,
  (v) => `alter role shop encrypted password E'${v}' valid until '2030-01-01'`,
  (v) => `create role r${randomInt(1e6)} login password $p$${v}$p$`,
  (v) => `alter role shop password "${v}"`,
  (v) =>
    `create subscription s${randomInt(1e6)} connection 'host=db user=app password=${v}' publication p with (connect = false)`,
  (v) => `create user mapping for shop server elsewhere options (user 'app', password '${v}')`,
  (v) => `create server s${randomInt(1e6)} foreign data wrapper w options (dsn 'postgresql://app:${v}@db/shop')`,
  (v) => `select * from dblink('host=db password=${v}', 'select 1')`,
  (v) => `set local shop.token to ${v}`,
  (v) => `set shop.secret = ${v}`,
  (v) => `alter role shop set shop.key to ${v}`,
  (v) => `select set_config('shop.token', '${v}', true)`,
  (v) => `notify shop, '${v}'`,
  (v) => `comment on table notes is 'password ${v}'`,
  (v) => `do $do$ begin perform '${v}'; end $do$`,
  (v) => `create function f${randomInt(1e6)}() returns text language sql as 'select ''${v}'''`,
  (v) => `copy notes from program 'curl -u app:${v} https://example.com'`,
  (v) => `copy (select '${v}') to '/nowhere/${v}'`,
  (v) => `insert into kept values ('${v}'), ('${v}')`,
  (v) => `select '${v}'::int`,
  (v) => `select to_date('${v}', 'YYYY')`,
  (v) => `alter system set primary_conninfo = 'host=db password=${v}'`,
  (v) => `security label for x on table notes is '${v}'`,
  (v) => `select pgp_sym_decrypt(body::bytea, '${v}') from notes`,
  (v) => `execute unknown('${v}')`,
  (v) => `select 1 where 'broken = '${v}'`,
]

const names: readonly ((secret: string) => string)[] = [
  (v) => `postgresql://app:${v}@db/shop`,
  (v) => `jdbc:postgresql://db/shop?password=${v}`,
  (v) => `host=db password=${v}`,
  (v) => `PGPASSWORD=${v} job`,
  (v) => `job --password ${v}`,
  (v) => `job --password=${v}`,
  (v) => `token: ${v}`,
  (v) => `api_key=${v}`,
  (v) => `redis://:${v}@cache`,
  (v) => `Authorization: Bearer ${v}`,
]

/**
 * 200 of them: 140 literals by form and place, 26 statements about credentials, 24 names of
 * programs, 10 of prepared transactions.
 */
export function plantSecrets(): Planted[] {
  const literals = places.flatMap((place) =>
    forms.map(({ write, isNumber }) => {
      const secret = isNumber ? number() : word()
      return { secret, statement: place(write(secret)) }
    }),
  )
  const about = statements.map((statement) => {
    const secret = word()
    return { secret, statement: statement(secret) }
  })
  const applications = Array.from({ length: 24 }, (_, at) => {
    const secret = word()
    return { secret, application: names[at % names.length]!(secret) }
  })
  const prepared = names.map((name) => {
    const secret = word()
    return { secret, gid: name(secret) }
  })
  return [...literals, ...about, ...applications, ...prepared]
}
