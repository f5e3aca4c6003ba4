import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { Command } from 'commander'
import { buildProgram } from '../../cli/program.ts'

const folders = [
  'activities',
  'clients',
  'effects',
  'knowledge',
  'lab',
  'sources',
  'api',
  'cli',
  'config',
  'db',
  'docs',
  'domain',
  'mesh',
  'notify',
  'safety',
  'start',
  'web',
  'worker',
]
const files = folders
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(tsx?|md)$/.test(file) && !/^(dist|node_modules)\//.test(file))
      .map((file) => join(folder, file)),
  )
  .concat('README.md', 'AGENTS.md', 'package/install.sh')

/**
 * Commands as people are shown them: behind a quote, a back quote, a tag, or at the start of a line
 * of code.
 */
function hintsIn(text: string): string[] {
  return [
    ...text.matchAll(
      /(?:["'`>]|^ *(?:\$ )?)(?:npm run -s nightshift -- |nightshift )([a-z][^"'`<\n|;&#\\]*)(?=["'`<\n|;&#]|$)/gm,
    ),
  ].map(([, words = '']) => words.trim())
}

/** A hint's fault, or null. */
function faultOf(program: Command, hint: string): string | null {
  const words = hint.split(/\s+/)
  let command: Command = program
  while (words.length > 0) {
    const next = command.commands.find((each) => each.name() === words[0])
    if (!next) break
    command = next
    words.shift()
  }
  if (command === program) return `there is no command ${words[0]}`
  if (command.commands.length > 0 && words.length > 0 && /^[a-z][a-z-]*$/.test(words[0] ?? ''))
    return `${command.name()} has no ${words[0]}`
  const named = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.replace(/[=.,:)].*$/, ''))
  const known = new Set(['--help', ...command.options.flatMap(({ long, short }) => [long, short])])
  const unknown = named.filter((word) => !known.has(word))
  if (unknown.length > 0) return `${command.name()} has no ${unknown.join(', ')}`
  if (named.includes('--help')) return null
  const missing = command.options.filter(({ mandatory, long }) => mandatory && !named.includes(long ?? ''))
  return words.length > 0 && missing.length > 0 ? `it needs ${missing.map(({ long }) => long).join(', ')}` : null
}

test('every command that a message prints exists', async () => {
  const program = await buildProgram()
  const wrong = files.flatMap((file) =>
    hintsIn(readFileSync(file, 'utf8')).flatMap((hint) => {
      const fault = faultOf(program, hint)
      return fault === null ? [] : [`${file}: nightshift ${hint}: ${fault}`]
    }),
  )
  expect(wrong).toEqual([])
})
