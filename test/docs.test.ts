import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { findWords, folksyWords, foreignReferences } from '../bench/house.ts'
import { platformOpenApi } from '../domain/platform-openapi.ts'

describe('docs', () => {
  const pages = [
    ...['README.md', 'AGENTS.md', 'CHANGELOG.md'],
    ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md'))
      .map((file) => join('docs', file)),
  ]
  const folders = readdirSync('.', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .map(({ name }) => name)

  /** GitHub's anchor of a heading: lower case, signs gone, spaces to hyphens. */
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[`*]/g, '')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')

  const anchorsOf = (file: string) =>
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, text]) => anchorOf(text!))

  test.each(pages)('every link of %s leads to a file and a heading that are there', (page) => {
    const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)].map(([, to]) => to!)
    const broken = links
      .filter((to) => !/^[a-z]+:/.test(to))
      .filter((to) => {
        const [path = '', anchor] = to.split('#')
        const file = path === '' ? page : normalize(join(dirname(page), path))
        return !existsSync(file) || (anchor !== undefined && !anchorsOf(file).includes(anchor))
      })
    expect(broken).toEqual([])
  })

  test.each(pages)('every file of the repository that %s names is there', (page) => {
    const named = [...readFileSync(page, 'utf8').matchAll(/`([a-z][\w./-]*\/[\w./-]*)`/g)].map(([, path]) => path!)
    // `web/dist` is built; a release's old name may stand in the changelog.
    const missing = named.filter(
      (path) =>
        folders.includes(path.split('/')[0]!) &&
        !path.startsWith('web/dist') &&
        !existsSync(path) &&
        !existsSync(`${path}.test.ts`),
    )
    expect(page === 'CHANGELOG.md' ? [] : missing).toEqual([])
  })
})

describe('words', () => {
  const code = readdirSync('.', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !/^(\.|node_modules$|test$|coverage$|docs$)/.test(entry.name))
    .flatMap(({ name }) => readdirSync(name, { recursive: true, encoding: 'utf8' }).map((file) => join(name, file)))
    .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('bench/house') && !file.includes('node_modules'))
  const docsPages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))

  const places = (words: RegExp) =>
    code.flatMap((file) => findWords(words, { path: file, text: readFileSync(file, 'utf8') }))

  test('no comment uses a word that an on-call engineer would not say', () => {
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

  test.each(docsPages)('docs/%s speaks plain English', (page) => {
    const archaic = /\b(whoever|nobody's|anew|heed(s|ed)?|mend(s|ed|ing)?|errands?|in vain|for want of)\b/i
    expect(
      readFileSync(join('docs', page), 'utf8')
        .split('\n')
        .filter((line) => archaic.test(line)),
    ).toEqual([])
  })
})

describe('platform protocol', () => {
  const file = 'docs/reference/platform.openapi.json'

  test('the published protocol is what the schemas say (UPDATE=1 writes it)', () => {
    const document = `${JSON.stringify(platformOpenApi(), null, 2)}\n`
    if (process.env.UPDATE) writeFileSync(file, document)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(document))
  })

  test('every reference in the document leads to a schema', () => {
    const text = JSON.stringify(platformOpenApi())
    const { schemas } = (JSON.parse(text) as { components: { schemas: Record<string, unknown> } }).components
    const named = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, to]) => to!)
    expect(named.length).toBeGreaterThan(10)
    for (const to of named) expect([to, to.replace('#/components/schemas/', '') in schemas]).toEqual([to, true])
  })
})
