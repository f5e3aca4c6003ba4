import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findWords, folksyWords, foreignReferences } from '../bench/house.ts'

const code = readdirSync('.', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !/^(\.|node_modules$|test$|coverage$|docs$)/.test(entry.name))
  .flatMap(({ name }) => readdirSync(name, { recursive: true, encoding: 'utf8' }).map((file) => join(name, file)))
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('bench/house') && !file.includes('node_modules'))
const pages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))

const places = (words: RegExp) =>
  code.flatMap((file) => findWords(words, { path: file, text: readFileSync(file, 'utf8') }))

test('no comment uses a word that an on-call engineer would not say', () => {
  expect(code.length).toBeGreaterThan(500)
  expect(places(folksyWords)).toEqual([])
})

test('no comment cites a document that is not in the repository', () => {
  expect(places(foreignReferences)).toEqual([])
})

test.each(pages)('docs/%s speaks plain English', (page) => {
  const archaic = /\b(whoever|nobody's|anew|heed(s|ed)?|mend(s|ed|ing)?|errands?|in vain|for want of)\b/i
  expect(
    readFileSync(join('docs', page), 'utf8')
      .split('\n')
      .filter((line) => archaic.test(line)),
  ).toEqual([])
})
