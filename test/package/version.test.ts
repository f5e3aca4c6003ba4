import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { version } from '../../domain/version.ts'

const read = (file: string) => readFileSync(file, 'utf8')
const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => join('docs', file))

test('the version of package.json is that of the lockfile and of the newest release in the changelog', () => {
  const lock = JSON.parse(read('package-lock.json'))
  expect([lock.version, lock.packages[''].version]).toEqual([version, version])
  expect(/^## \[(\d+\.\d+\.\d+)\]/m.exec(read('CHANGELOG.md'))?.[1]).toBe(version)
})

test('no image, archive or folder has another version in its name', () => {
  const named = ['README.md', 'docker-compose.yml', 'Dockerfile', ...docs].flatMap((file) =>
    [...read(file).matchAll(/nightshift(?::|-|\/)(\d+\.\d+\.\d+)/g)].map(([, found]) => [file, found]),
  )
  expect(named.length).toBeGreaterThan(0)
  expect(named.filter(([, found]) => found !== version)).toEqual([])
})
