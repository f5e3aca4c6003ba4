import { inspectSql } from '../sql/inspect.ts'
import { inspectAwk } from './awk.ts'
import { inspectClickhouse } from './clickhouse.ts'
import { inspectCql } from './cql.ts'
import { inspectContainerTemplate, inspectKubernetesOutput } from './fields.ts'
import type { Language } from './grammar.ts'
import { inspectJq } from './jq.ts'
import { inspectMongosh } from './mongosh.ts'
import { inspectSed } from './sed.ts'

/** Why a text in a small language does more than look; null when it only looks. */
type Inspect = (text: string) => string | null

const sql =
  (dialect: 'postgres' | 'mysql' | 'sqlite'): Inspect =>
  (text) => {
    const { readOnly, reason } = inspectSql(dialect, text)
    return readOnly ? null : reason
  }

/**
 * Commands of psql(1) that list what is there. Left out: foreign servers, user mappings and subscriptions, whose options hold passwords,
 * and \\dconfig, which shows settings.
 */
const listing =
  /^\s*\\(?:d(?:[aAbcCdDEfgilLmnoOpPstTuvxXy]|ac|dp|rds|rg|Rp|F[dpt]?|P[it]*|o[S+]*|fn|fa|fp|fw|ft|it|ti|tv|tvs|ts)?[S+x]*|l|z|conninfo|encoding|sf|sv)[S+x]*(?:\s+[\w.*?"$()-]+)?\s*$/

function inspectPsql(text: string): string | null {
  return listing.test(text) ? null : sql('postgres')(text)
}

export const languages: ReadonlyMap<string, Inspect> = new Map<Language, Inspect>([
  ['awk', inspectAwk],
  ['sed', inspectSed],
  ['jq', inspectJq],
  ['sql:postgres', sql('postgres')],
  ['psql', inspectPsql],
  ['sql:mysql', sql('mysql')],
  ['sql:sqlite', sql('sqlite')],
  ['sql:clickhouse', inspectClickhouse],
  ['cql', inspectCql],
  ['mongosh', inspectMongosh],
  ['fields:container', inspectContainerTemplate],
  ['fields:kubernetes', inspectKubernetesOutput],
])
