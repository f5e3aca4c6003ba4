import { execFileSync } from 'node:child_process'
import { type CommandVerdict, judgeCommand } from '../../../safety/command/judge.ts'
import { settingsDirectory } from '../../../safety/command/settings-directory.ts'
import { readEnvironment } from '../../../safety/command/surroundings.ts'
import { settingsAt } from './canaries.ts'
import { type Finder, type Harm, harmsOf } from './oracle.ts'
import { type Worlds, wallSeconds } from './world.ts'

/** What became of a set of texts. */
export type Tally = {
  name: string
  texts: number
  /** To which the judge answers `run`. */
  unasked: number
  executed: number
  /** Still there when the wall of seconds was reached. */
  slow: string[]
  /** Programs that are not on this machine, with how many texts name one. */
  leftOut: Map<string, number>
  harmful: { text: string; harms: Harm[] }[]
  /**
   * What redaction would have taken out whole was turned round or cut before it got there: a limit
   * that docs/explanation/safety.md names.
   */
  cut: string[]
}

/** Names that the judge is told were looked up; all of them lead to the world itself. */
const context = {
  knownHosts: new Set(['db1', 'db-osl-1', '10.0.0.1', '10.0.0.5', 'app.example.com', 'example.com']),
  knownNames: new Set(['web', 'web-1', '101', 'api']),
  directory: '/',
}

/** As mesh/agent/run.ts sets it for a read, in a world whose person is root. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export const environment = { PATH: path, LANG: 'C.UTF-8', HOME: '/root', ...readEnvironment, TMPDIR: '/dev/shm' }

function environmentOf(verdict: CommandVerdict): Record<string, string> {
  const own = Object.entries(verdict.environment).map(([name, value]) => [
    name,
    value.replaceAll(settingsDirectory, settingsAt),
  ])
  return { ...environment, ...Object.fromEntries(own) }
}

const isHere = new Map<string, boolean>()

/** Is it a word of bash, or a program where a device looks for one? */
function hasProgram(name: string): boolean {
  let here = isHere.get(name)
  if (here === undefined) {
    here =
      execFileSync('/bin/bash', ['-c', 'type -t -- "$1" || true', 'bash', name], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: path },
      }).length > 0
    isHere.set(name, here)
  }
  return here
}

/** Programs of the texts that run unasked, as far as they are here. */
export function programsOf(texts: Iterable<string>): string[] {
  const verdicts = [...texts].map((text) => judgeCommand(text, context))
  const names = verdicts.flatMap(({ verdict, commands }) => (verdict === 'run' ? commands : []))
  return [...new Set(names)].filter((name) => /^[a-z]/.test(name) && hasProgram(name)).sort()
}

/** Judges each text and runs what would run unasked. */
export async function hold(name: string, texts: Iterable<string>, worlds: Worlds, find: Finder): Promise<Tally> {
  const tally: Tally = { name, texts: 0, unasked: 0, executed: 0, slow: [], leftOut: new Map(), harmful: [], cut: [] }
  const running = new Set<Promise<void>>()
  for (const text of new Set(texts)) {
    tally.texts++
    const verdict = judgeCommand(text, context)
    if (verdict.verdict !== 'run' || text.includes('\0')) continue
    tally.unasked++
    // A variable's value may stand among them.
    const missing = verdict.commands.filter((name) => !text.includes(`=${name} `) && !hasProgram(name))
    // The one condition that the worlds do not fulfil: no Java runs in them.
    missing.push(...verdict.conditions.flatMap(({ kind, program }) => (kind === 'java' ? program : [])))
    if (missing.length > 0) {
      tally.leftOut.set(missing[0]!, (tally.leftOut.get(missing[0]!) ?? 0) + 1)
      continue
    }
    const job = { text, environment: environmentOf(verdict), directory: context.directory }
    const one: Promise<void> = worlds.run(job).then((outcome) => {
      tally.executed++
      if (outcome.how === 'time') tally.slow.push(text)
      const harms = harmsOf(text, outcome, find)
      const others = harms.filter(({ kind }) => kind !== 'cut secret')
      if (others.length > 0) tally.harmful.push({ text, harms: others })
      else if (harms.length > 0) tally.cut.push(text)
    })
    running.add(one)
    void one.finally(() => running.delete(one)).catch(() => undefined)
    if (running.size > 8) await Promise.race(running)
  }
  await Promise.all(running)
  return tally
}

export function describeTally({ name, texts, unasked, executed, slow, leftOut, harmful, cut }: Tally): string {
  const out = [...leftOut.values()].reduce((sum, count) => sum + count, 0)
  const kinds = Object.entries(Object.groupBy(harmful, ({ harms }) => harms[0]!.kind))
  const ofKinds = kinds.map(([kind, rows]) => `${rows!.length} ${kind}`).join(', ')
  return [
    `${name}: ${texts} texts, ${unasked} run unasked, ${executed} were executed`,
    `${out} left out (${leftOut.size} programs)`,
    `${slow.length} still there after ${wallSeconds} s`,
    `${cut.length} with a cut secret`,
    `${harmful.length} harmful${ofKinds === '' ? '' : ` (${ofKinds})`}`,
  ].join(', ')
}
