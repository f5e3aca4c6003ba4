import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { apt, installWith, pkgWith, searchWith } from '../../../../mesh/agent/capabilities/pkg.ts'
import { type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

const { search: pkgSearch, install: pkgInstall } = pkgWith([])

// The real apt-get and dpkg, in a root of their own with a repository of hand-made packages. dpkg
// wants to be root for that.
const here = existsSync('/usr/bin/apt-get') && existsSync('/usr/bin/dpkg-deb') && process.getuid!() === 0
const onDebian = here ? test : test.skip

let place: ReturnType<typeof temporaryDirectory>
let device: Device
let root: string
let options: string[]
const at = (...names: string[]) => join(place.path, ...names)

beforeAll(() => {
  place = temporaryDirectory()
  device = deviceOf(at('state'), {})
  if (!here) return
  root = at('root')
  const repository = at('repository')
  for (const directory of [
    'root/var/lib/dpkg/info',
    'root/var/lib/dpkg/updates',
    'root/var/lib/apt/lists/partial',
    'root/var/cache/apt/archives/partial',
    'root/etc/apt/preferences.d',
    'root/var/log/apt',
    'repository',
  ])
    mkdirSync(at(directory), { recursive: true })
  writeFileSync(at('root/var/lib/dpkg/status'), '')
  writeFileSync(at('root/etc/apt/sources.list'), `deb [trusted=yes] file:${repository} ./\n`)
  writeFileSync(
    join(repository, 'Packages'),
    [
      build(repository, 'nightly-probe', '1.2', 'Probes at night', 'Depends: nightly-base'),
      build(repository, 'nightly-base', '3.0+x', 'What probes need', ''),
      build(repository, 'nightly-rival', '1.0', 'Cannot live beside it', 'Conflicts: nightly-base'),
    ].join('\n'),
  )
  options = [
    '-o',
    `Dir=${root}`,
    '-o',
    `Dir::State::status=${root}/var/lib/dpkg/status`,
    '-o',
    'Dir::Bin::dpkg=/usr/bin/dpkg',
    '-o',
    'Dir::Bin::methods=/usr/lib/apt/methods',
    '-o',
    'APT::Sandbox::User=root',
    '-o',
    `DPkg::Options::=--root=${root}`,
    '-o',
    'DPkg::Options::=--force-not-root',
    '-o',
    `DPkg::Options::=--log=${root}/dpkg.log`,
    '-o',
    'APT::Architecture=amd64',
    '-o',
    'APT::Architectures::=amd64',
  ]
  execFileSync('apt-get', [...options, 'update'], { stdio: 'pipe' })
})
afterAll(() => place.remove())

/** A real .deb and its paragraph in the index. */
function build(repository: string, name: string, version: string, description: string, field: string): string {
  const tree = at('build', name)
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true })
  mkdirSync(join(tree, 'opt'), { recursive: true })
  writeFileSync(join(tree, 'opt', name), `${version}\n`)
  const control = [
    `Package: ${name}`,
    `Version: ${version}`,
    'Architecture: all',
    'Maintainer: Nobody <nobody@localhost>',
    ...(field ? [field] : []),
    `Description: ${description}`,
  ]
  writeFileSync(join(tree, 'DEBIAN/control'), `${control.join('\n')}\n`)
  const file = join(repository, `${name}.deb`)
  execFileSync('dpkg-deb', ['--build', '--root-owner-group', tree, file], { stdio: 'pipe' })
  const bytes = readFileSync(file)
  const digest = createHash('sha256').update(bytes).digest('hex')
  return `${control.join('\n')}\nFilename: ./${name}.deb\nSize: ${bytes.length}\nSHA256: ${digest}\n`
}

const search = (text: string) => done(device, searchWith(apt(options)), { text })
const install = (...packages: string[]) => [device, installWith(apt(options)), { packages }] as const

onDebian('packages are searched by name and description', async () => {
  expect(await search('nightly-p')).toEqual({
    packages: [{ name: 'nightly-probe', description: 'Probes at night' }],
    total: 1,
  })
  expect(await search('what probes')).toMatchObject({ packages: [{ name: 'nightly-base' }] })
  // A dot is a dot.
  expect(await search('night.y')).toEqual({ packages: [], total: 0 })
})

onDebian('a rehearsed install says what would come, and installs nothing', async () => {
  const shown = await done(...install('nightly-probe'), { rehearse: true })
  expect(shown).toMatchObject({ would_change: true, checks: [] })
  expect(shown.diff).toMatch(/^Inst nightly-base .*\nInst nightly-probe /)
  expect(existsSync(join(root, 'opt/nightly-probe'))).toBe(false)
})

onDebian('a package is installed with what it needs, and apt is heard line by line', async () => {
  const result = await done(...install('nightly-probe=1.2'))
  expect(result.packages).toEqual([{ name: 'nightly-probe', before: null, after: '1.2' }])
  expect(readFileSync(join(root, 'opt/nightly-probe'), 'utf8')).toBe('1.2\n')
  expect(existsSync(join(root, 'opt/nightly-base'))).toBe(true)
  expect(device.lines.some((line) => line.startsWith('Setting up nightly-probe (1.2)'))).toBe(true)
  expect((await done(...install('nightly-probe'))).packages).toEqual([
    { name: 'nightly-probe', before: '1.2', after: '1.2' },
  ])
})

onDebian('nothing is removed to make room for what is installed', async () => {
  await done(...install('nightly-base'))
  const { code, message } = await fault(...install('nightly-rival'))
  expect(code).toBe('failed')
  expect(message).toMatch(/remove/i)
  expect(existsSync(join(root, 'opt/nightly-base'))).toBe(true)
})

onDebian('a name that apt would take for a pattern installs nothing', async () => {
  expect(await fault(...install('nightly.+'))).toEqual({
    code: 'not_found',
    message: 'apt knows no package nightly.+',
  })
  expect(await fault(...install('nightly-probe', 'no-such-thing'))).toMatchObject({ code: 'not_found' })
})

test.each([
  '-y',
  '--reinstall',
  'nginx-',
  './local.deb',
  '/tmp/local.deb',
  'nginx/stable',
  'nginx:i386',
  'Nginx',
  'nginx*',
  'task^',
  'nginx=1.0-',
  'nginx; id',
  '',
])('%j is no package to install', (name) => {
  expect(pkgInstall.args.safeParse({ packages: [name] }).success).toBe(false)
})

test.each(['nginx', 'g++', 'libc6', 'python3.11', 'nginx=1.22.1-9+deb12u1', 'vim=2:9.0.1378-2', 'a2'])(
  '%j is a package to install',
  (name) => {
    expect(pkgInstall.args.safeParse({ packages: [name] }).success).toBe(true)
  },
)

test('a search runs without approval and an install asks', () => {
  const { manifest } = device
  expect(pkgSearch.weigh({ text: 'nginx', limit: 1 }, manifest).effect).toBe('read')
  expect(pkgInstall.weigh({ packages: ['nginx'] }, manifest).effect).toBe('write')
  expect(pkgSearch.args.safeParse({ text: '--all' }).success).toBe(false)
})
