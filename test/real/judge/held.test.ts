import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { note } from '../facts.ts'
import { chanceOf, furnish } from './canaries.ts'
import { dressed, inTables, labelled } from './corpora.ts'
import { readGrammar, textsOf } from './grammar.ts'
import { describeTally, hold, programsOf, type Tally } from './held.ts'
import { helpedTexts, readHelp } from './help.ts'
import { type Finder, finderOf } from './oracle.ts'
import { canRunWorlds, openWorlds, type Worlds } from './world.ts'

// What the judge lets run unasked is run, in worlds that are thrown away, and does no harm in them.

const isWhole = process.env.NIGHTSHIFT_TESTS === 'real'
/** One in a hundred in `test:long`. */
const share = Number(process.env.JUDGE_SHARE ?? (isWhole ? 1 : 0.01))
const seed = Number(process.env.FC_SEED ?? 20_261_126)
const perClass = Math.round(10_000 * share)
const lanes = 4

const canRun = canRunWorlds()
const when = canRun ? describe : describe.skip

const classes = [
  ['substitutions and pipes', 'substitutions'],
  ['options of programs and scripts', 'scripts'],
  ['places, fields and formats', 'places'],
] as const

when(`What runs unasked, by seed ${seed}${canRun ? '' : ' (it needs root and perl)'}`, () => {
  const { furniture, canaries } = furnish(seed)
  let worlds: Worlds
  let find: Finder
  const tallies: Tally[] = []
  beforeAll(async () => {
    await loadSql()
    find = finderOf(canaries)
    worlds = openWorlds(furniture, lanes)
    console.log(`FC_SEED=${seed}, ${perClass} texts a class, ${canaries.length} secrets planted`)
  })
  afterAll(async () => {
    await worlds.close()
    if (process.env.JUDGE_FINDINGS)
      writeFileSync(
        process.env.JUDGE_FINDINGS,
        JSON.stringify(
          tallies.map((each) => ({ ...each, leftOut: [...each.leftOut] })),
          null,
          1,
        ),
      )
  })

  async function holds(name: string, texts: Iterable<string>) {
    const tally = await hold(name, texts, worlds, find)
    tallies.push(tally)
    console.log(describeTally(tally))
    note(name, `${tally.executed} of ${tally.unasked} executed, ${tally.harmful.length} harmful`)
    expect(tally.harmful).toEqual([])
  }
  const some = (texts: string[]) => {
    const chance = chanceOf(seed)
    return share >= 1 ? texts : texts.filter(() => chance(1_000) < 1_000 * share)
  }

  test('of the labelled corpora does no harm', () => holds('labelled corpora', some(labelled())), 3_600_000)
  test('of the tables of the tests does no harm', () => holds('tables of the tests', some(inTables())), 3_600_000)
  test(
    'of the disguises and layers does no harm',
    () => holds('dresses and layers', dressed(seed, perClass)),
    3_600_000,
  )
  test.each(classes)(
    'of the class of %s does no harm',
    (name, grammar) => holds(name, textsOf(readGrammar(grammar), chanceOf(seed), perClass)),
    3_600_000,
  )

  test('of the options that --help names does no harm', async () => {
    const help = await readHelp(programsOf([...labelled(), ...inTables()]), worlds)
    expect(help.size).toBeGreaterThan(20)
    await holds(`options that --help of ${help.size} programs names`, helpedTexts(help, chanceOf(seed), perClass))
  }, 3_600_000)
})
