import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from '@jest/globals'

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
