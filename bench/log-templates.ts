import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { groupLines } from '../sources/logs/last.ts'

/**
 * Measures the grouping of log lines, on LogHub's samples of 2,000 lines, each with its template
 * (https://github.com/logpai/loghub; read from a directory, not included here). Grouping accuracy
 * is the share of lines whose group has exactly the lines of their true template. The published
 * numbers are Drain's in Zhu et al., "Tools and Benchmarks for Automated Log Parsing", ICSE-SEIP
 * 2019, table II, with masks for each set; Nightshift has one set of masks for all.
 */

const published: Record<string, number> = {
  HDFS: 0.998,
  Hadoop: 0.948,
  Spark: 0.92,
  Zookeeper: 0.967,
  OpenStack: 0.733,
  BGL: 0.963,
  HPC: 0.887,
  Thunderbird: 0.955,
  Windows: 0.997,
  Linux: 0.69,
  Mac: 0.787,
  Android: 0.911,
  HealthApp: 0.78,
  Apache: 1,
  OpenSSH: 0.788,
  Proxifier: 0.527,
}

export function benchLogTemplates(directory: string | undefined): void {
  const files =
    directory && existsSync(directory)
      ? readdirSync(directory).filter((name) => name.endsWith('_2k.log_structured.csv'))
      : []
  if (!directory || files.length === 0) {
    console.log(
      'log templates: set LOGHUB_DIR to a directory with the *_2k.log_structured.csv of https://github.com/logpai/loghub',
    )
    return
  }
  const all = files.sort().map((name) => {
    const set = name.split('_')[0] as string
    const [head = [], ...rows] = parseCsv(readFileSync(join(directory, name), 'utf8'))
    const [content, event] = [head.indexOf('Content'), head.indexOf('EventId')]
    const startedAt = performance.now()
    const groups = groupLines(rows.map((row, atMs) => ({ atMs, text: row[content] ?? '' })))
    const ms = performance.now() - startedAt
    return {
      set,
      accuracy: measure(
        groups,
        rows.map((row) => row[event] ?? ''),
      ),
      ms,
    }
  })
  console.log('set            ours   published   ms for 2,000 lines')
  for (const { set, accuracy, ms } of all)
    console.log(
      `${set.padEnd(13)} ${accuracy.toFixed(3)}  ${(published[set] ?? Number.NaN).toFixed(3)}       ${ms.toFixed(0)}`,
    )
  const mean = (values: number[]) => values.reduce((sum, each) => sum + each, 0) / values.length
  console.log(
    `mean          ${mean(all.map(({ accuracy }) => accuracy)).toFixed(3)}  ${mean(all.map(({ set }) => published[set] ?? 0)).toFixed(3)}`,
  )
}

function measure(groups: readonly object[], events: readonly string[]): number {
  const lines = groups.map((group, at) => ({ group, event: events[at] as string, at }))
  const byEvent = Map.groupBy(lines, ({ event }) => event)
  const byGroup = Map.groupBy(lines, ({ group }) => group)
  const right = [...byGroup.values()].filter((own) => {
    const event = (own[0] as (typeof lines)[number]).event
    return own.every((line) => line.event === event) && byEvent.get(event)?.length === own.length
  })
  return right.reduce((sum, own) => sum + own.length, 0) / lines.length
}

/** Parses rows of a CSV with quoted fields (RFC 4180). */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)?.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'))
    if (end !== ',') rows.push([])
  }
  return rows.filter((row) => row.length > 1)
}
