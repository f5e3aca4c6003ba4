import { inspectSql } from '../sql/inspect.ts'
import { inspectAwk } from './awk.ts'
import { inspectContainerTemplate, inspectKubernetesOutput } from './fields.ts'
import type { Language } from './grammar.ts'
import { inspectJq } from './jq.ts'
import { inspectSed } from './sed.ts'

/** Why a text in a small language does more than look; null when it only looks. */
type Inspect = (text: string) => string | null

const sql =
  (dialect: 'postgres' | 'mysql' | 'sqlite'): Inspect =>
  (text) => {
    const { readOnly, reason } = inspectSql(dialect, text)
    return readOnly ? null : reason
  }

export const languages: ReadonlyMap<string, Inspect> = new Map<Language, Inspect>([
  ['awk', inspectAwk],
  ['sed', inspectSed],
  ['jq', inspectJq],
  ['sql:postgres', sql('postgres')],
  ['sql:mysql', sql('mysql')],
  ['sql:sqlite', sql('sqlite')],
  ['fields:container', inspectContainerTemplate],
  ['fields:kubernetes', inspectKubernetesOutput],
])
