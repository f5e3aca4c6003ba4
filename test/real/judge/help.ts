import type { Chance } from './canaries.ts'
import { fill, generate, readGrammar } from './grammar.ts'
import { environment } from './held.ts'
import type { Worlds } from './world.ts'

/**
 * Class 2 once more, with the options that each program says it has: `--help` is read in a world,
 * so that an option counts whether a manual was read for the grammar or not. A text is a program,
 * one to three of its options with and without a value, and up to two operands of the grammar of
 * scripts.
 */
export async function readHelp(programs: readonly string[], worlds: Worlds): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  await Promise.all(
    programs.map(async (program) => {
      const { stdout, stderr } = await worlds.run({ text: `${program} --help`, environment, directory: '/' })
      const names = [...`${stdout}\n${stderr}`.matchAll(/(?<=^|[\s,[(|])(--?[A-Za-z0-9][\w-]*)(\[?=)?/gm)]
      const options = [...new Set(names.map(([, name = '', equals]) => (equals ? `${name}=` : name)))]
      if (options.length > 0) found.set(program, options)
    }),
  )
  // In an order that does not depend on which was first.
  return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
}

const grammar = readGrammar('scripts')
const pick = <T>(chance: Chance, all: readonly T[]): T => all[chance(all.length)]!

const values = ['5', '1', 'x', '<output>', '<operand>', '<secret>', '<badprogram>']
const fillValue = (chance: Chance): string => fill(grammar, chance, pick(chance, values))

export function* helpedTexts(help: Map<string, string[]>, chance: Chance, count: number): Generator<string> {
  const programs = [...help]
  const seen = new Set<string>()
  for (let tries = 0; seen.size < count && tries < count * 20; tries++) {
    const [program, options] = pick(chance, programs)
    const words = Array.from({ length: 1 + chance(3) }, () => {
      const option = pick(chance, options)
      if (option.endsWith('=')) return `${option}${fillValue(chance)}`
      return chance(3) === 0 ? `${option} ${fillValue(chance)}` : option
    })
    const operands = Array.from({ length: chance(3) }, () => generate(grammar, chance, 'operand'))
    const text = [program, ...words, ...operands].join(' ')
    if (seen.has(text)) continue
    seen.add(text)
    yield text
  }
}
