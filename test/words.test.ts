import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findWords, folksyWords, foreignReferences } from '../bench/house.ts'

const code = readdirSync('.', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !/^(\.|node_modules$|test$|coverage$|docs$)/.test(entry.name))
  .flatMap(({ name }) => readdirSync(name, { recursive: true, encoding: 'utf8' }).map((file) => join(name, file)))
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('bench/house') && !file.includes('node_modules'))
const docsPages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))

const places = (words: RegExp) =>
  code.flatMap((file) => findWords(words, { path: file, text: readFileSync(file, 'utf8') }))

test('no comment uses a word that an on-call engineer would not use', () => {
  expect(code.length).toBeGreaterThan(500)
  expect(places(folksyWords)).toEqual([])
})

/** What pages, terminal and messages said before the glossary had a word for it. */
const replacedWords =
  /\b(needs a person|look and decide|capability gaps|approved, used|it only looks|to be asked|asked anew|handed to people|hand it to people|put it before|investigate again|which means|how incidents stand|median time to its end|very same|really:|mint(s|ed|ing)? (a|your|for)|good for ever|row of theirs|machines alone|context assembled|did not hold|whose whole|(is|are) dead|has died)\b/i

test('no page, command or message uses a word that the glossary replaced', () => {
  const shown = code.filter(
    (file) => /^(web|cli|slack|notify)\//.test(file) || /^domain\/(format|status|brief|done|postm)/.test(file),
  )
  const said = shown.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => !/^\s*(\/\/|\/?\*)/.test(line) && replacedWords.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )
  expect(said).toEqual([])
})

test('no comment cites a document that is not in the repository', () => {
  expect(places(foreignReferences)).toEqual([])
})

test.each(docsPages)('docs/%s uses plain English', (page) => {
  const archaic = /\b(whoever|nobody's|anew|heed(s|ed)?|mend(s|ed|ing)?|errands?|in vain|for want of)\b/i
  expect(
    readFileSync(join('docs', page), 'utf8')
      .split('\n')
      .filter((line) => archaic.test(line)),
  ).toEqual([])
})

/** Words that begin no comment: a noun or a verb says at once what it is about. */
const badBeginnings = /^(So|Of|Who|Whose|Whom|What (is|are|was|were))\b/
/** An address, a table's row and an indented example stay whole. */
const unbroken = /https?:\/\/\S{40}|^\s*\* (\||\s{2,})/
const released = /^migrations\//

test('no comment is wider than 100 columns, and each begins with a noun or a verb', () => {
  const tests = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((file) => join('test', file))
  const found = [...code, ...tests.filter((file) => /\.tsx?$/.test(file))]
    .filter((file) => !released.test(file))
    .flatMap((file) => {
      const lines = readFileSync(file, 'utf8').split('\n')
      return lines.flatMap((line, index) => {
        const [, sign, said = ''] = /^\s*(\/\*\*|\/\/|\*)(?:\s(.*))?$/.exec(line) ?? []
        if (sign === undefined || /biome-ignore|@ts-/.test(line)) return []
        const before = lines[index - 1] ?? ''
        const isFirst = sign === '/**' || (sign === '*' ? /^\s*\/\*\*\s*$/.test(before) : !/^\s*\/\//.test(before))
        const isWrong = (line.length > 100 && !unbroken.test(line)) || (isFirst && badBeginnings.test(said))
        return isWrong ? [`${file}:${index + 1}: ${line.trim()}`] : []
      })
    })
  expect(found).toEqual([])
})
