import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { commandBlocks, commandsOf, pages } from './command-blocks.ts'
import { walks } from './walks.ts'

const walked = new Set(walks.map(({ page }) => page))

/** Blocks of commands without a mark. */
const unmarked = (page: string, text?: string) =>
  commandBlocks(page, text)
    .filter(({ mark }) => mark === null)
    .map(({ line, commands }) => `${page}:${line} ${commands[0]}`)

test('every command of a page is run by a test, or a mark before its block says why not', () => {
  expect(pages.filter((page) => !walked.has(page)).flatMap((page) => unmarked(page))).toEqual([])
})

test('a test that a mark names reads that page', () => {
  const named = pages.flatMap((page) => commandBlocks(page)).filter(({ mark }) => mark && 'runBy' in mark)
  expect(named.length).toBeGreaterThan(5)
  const wrong = named.filter(
    ({ page, mark }) => mark && 'runBy' in mark && !readFileSync(mark.runBy, 'utf8').includes(page),
  )
  expect(wrong).toEqual([])
})

test('a page that is walked has a command that is run', () => {
  for (const { page } of walks) expect([page, unmarked(page).length > 0]).toEqual([page, true])
})

test('a block without a mark is found, also in a list, and a block with a mark is not', () => {
  const block = (before: string) => `Words.\n${before}\n\n   \`\`\`\n   nightshift doctor\n   \`\`\`\n`
  expect(unmarked('a.md', block(''))).toEqual(['a.md:4 nightshift doctor'])
  for (const mark of ['not run: it asks', 'run by a.test.ts'])
    expect(unmarked('a.md', block(`<!-- ${mark} -->`))).toEqual([])
  expect(unmarked('a.md', '```\nalert in → incident\n```\n```yaml\nset: 1\n```\n')).toEqual([])
  expect(unmarked('a.md', '<!-- run -->\n| `nightshift trust` | says |\n')).toEqual(['a.md:1 nightshift trust'])
})

test('a command includes its continuation lines, and neither comments nor its output', () => {
  expect(commandsOf(['# why', 'cat > a <<E', '# not a comment', 'E', 'echo a \\', '  b'])).toEqual([
    'cat > a <<E\n# not a comment\nE',
    'echo a \\\n  b',
  ])
  expect(commandsOf(['$ nightshift trust', 'TYPE  TOOL'])).toEqual(['nightshift trust'])
})
