import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'

/**
 * The folder in each web node's directory with a separate system, which has its own data of apt and
 * dpkg.
 */
const systemDirectory = 'system'

/**
 * The file that names the package that the newest release needs, relative to the node's directory.
 * Absent if the release needs none.
 */
export const needsFile = 'etc/needs.json'

const needed = { name: 'nightly-tariffs', version: '1.4', file: 'usr/share/nightly-tariffs/tariffs.json' }
const tariffs = `${JSON.stringify({ currency: 'NOK', perRequest: 0.002 }, null, 2)}\n`

/** Programs that the fault with packages needs. */
export const packagePrograms = ['apt-get', 'apt-cache', 'dpkg', 'dpkg-deb']
const searched = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
const environment = { PATH: searched.join(':'), HOME: '/nonexistent', LC_ALL: 'C.UTF-8' }

/** Creates an empty system: no package is installed, and the package repository is empty. */
export function makeSystem(lab: Lab, node: NodePlan): void {
  for (const name of [
    '',
    'etc',
    'etc/apt',
    'etc/apt/preferences.d',
    'srv',
    'srv/packages',
    'usr',
    'usr/share',
    'var',
    'var/lib',
    'var/lib/apt',
    'var/lib/apt/lists',
    'var/lib/apt/lists/partial',
    'var/lib/dpkg',
    'var/lib/dpkg/info',
    'var/lib/dpkg/updates',
    'var/cache',
    'var/cache/apt',
    'var/cache/apt/archives',
    'var/cache/apt/archives/partial',
    'var/log',
    'var/log/apt',
  ])
    ownDirectory(lab, systemPath(lab, node, name))
  const repository = pathToFileURL(systemPath(lab, node, 'srv/packages')).href.replace('file://', 'file:')
  writeForNode(lab, systemPath(lab, node, 'etc/apt/sources.list'), `deb [trusted=yes] ${repository} ./\n`)
  writeForNode(lab, aptSettings(lab, node), settingsOf(systemPath(lab, node, '')))
  if (!exists(statusFile(lab, node))) writeForNode(lab, statusFile(lab, node), '')
}

/** Resets a node's system to its first state. */
export function renewSystem(lab: Lab, node: NodePlan): void {
  rmSync(systemPath(lab, node, ''), { recursive: true, force: true })
  makeSystem(lab, node)
}

/** Returns the options that a node's agent passes to each call of apt. */
export function aptOptionsOf(lab: Lab, node: NodePlan): string[] {
  return [`--config-file=${aptSettings(lab, node)}`]
}

/** Lists the programs that are missing in the PATH of nodes and agents. */
export function missingPrograms(names: readonly string[]): string[] {
  return names.filter((name) => !searched.some((directory) => exists(join(directory, name), constants.X_OK)))
}

/**
 * Creates a release that needs a package. The node's repository has the package, but it is not
 * installed. Throws the error of apt or dpkg-deb.
 */
export async function needPackage(lab: Lab, node: NodePlan): Promise<void> {
  const run = promisify(execFile)
  const options = { cwd: '/', env: environment, ...lab.account }
  const tree = systemPath(lab, node, 'srv/build')
  const file = systemPath(lab, node, `srv/packages/${needed.name}.deb`)
  const control = [
    `Package: ${needed.name}`,
    `Version: ${needed.version}`,
    'Architecture: all',
    'Maintainer: Lab <lab@lab.internal>',
    'Description: What a request costs',
  ]
  for (const name of ['', 'DEBIAN', 'usr', 'usr/share', `usr/share/${needed.name}`]) ownDirectory(lab, join(tree, name))
  writeForNode(lab, join(tree, 'DEBIAN/control'), `${control.join('\n')}\n`)
  writeForNode(lab, join(tree, needed.file), tariffs)
  await run('dpkg-deb', ['--build', '--root-owner-group', tree, file], options)
  rmSync(tree, { recursive: true })
  const deb = readFileSync(file)
  const index = [...control, `Filename: ./${needed.name}.deb`, `Size: ${deb.length}`, `SHA256: ${sha256(deb)}`]
  writeForNode(lab, systemPath(lab, node, 'srv/packages/Packages'), `${index.join('\n')}\n`)
  await run('apt-get', [...aptOptionsOf(lab, node), 'update'], options)
  const needs = { package: needed.name, file: join(systemDirectory, needed.file) }
  writeForNode(lab, join(nodeDirectory(lab, node.id), needsFile), `${JSON.stringify(needs)}\n`)
}

/**
 * Lists the faults of a node's system: the package is not installed, its file is wrong, or packages
 * are installed that nobody requested.
 */
export async function systemProblems(lab: Lab, node: NodePlan): Promise<string[]> {
  const problems: string[] = []
  try {
    const { stdout } = await promisify(execFile)(
      'dpkg-query',
      [
        `--admindir=${systemPath(lab, node, 'var/lib/dpkg')}`,
        '--show',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own fields
        '--showformat=${Package} ${Version} ${Status}\n',
      ],
      { cwd: '/', env: environment, ...lab.account },
    )
    const wanted = `${needed.name} ${needed.version} install ok installed`
    const found = stdout.split('\n').filter(Boolean)
    if (!found.includes(wanted)) problems.push(`${needed.name} is not installed`)
    problems.push(...found.filter((line) => line !== wanted).map((line) => `also: ${line}`))
  } catch (error) {
    problems.push(`dpkg-query: ${(error as { stderr?: string }).stderr?.trim() || (error as Error).message}`)
  }
  const file = systemPath(lab, node, needed.file)
  if (!exists(file) || readFileSync(file, 'utf8') !== tariffs) problems.push(`${needed.file} is not the package's`)
  return problems
}

/**
 * Builds the node's settings of apt. apt reads the machine's settings first, so the node's settings
 * clear the machine's hooks.
 */
function settingsOf(root: string): string {
  return [
    `Dir "${root}";`,
    `Dir::State::status "${join(root, 'var/lib/dpkg/status')}";`,
    'Dir::Bin::dpkg "/usr/bin/dpkg";',
    'Dir::Bin::methods "/usr/lib/apt/methods";',
    'Dir::Cache::pkgcache "";',
    'Dir::Cache::srcpkgcache "";',
    'Acquire::Languages "none";',
    ...['DPkg::Pre-Invoke', 'DPkg::Post-Invoke', 'DPkg::Pre-Install-Pkgs'].map((hook) => `#clear ${hook};`),
    ...['Pre-Invoke', 'Post-Invoke', 'Post-Invoke-Success'].map((hook) => `#clear APT::Update::${hook};`),
    `DPkg::Options { "--root=${root}"; "--force-not-root"; "--log=${join(root, 'var/log/dpkg.log')}"; };`,
    '',
  ].join('\n')
}

function systemPath(lab: Lab, { id }: NodePlan, name: string): string {
  return join(nodeDirectory(lab, id), systemDirectory, name)
}

function statusFile(lab: Lab, node: NodePlan): string {
  return systemPath(lab, node, 'var/lib/dpkg/status')
}

function aptSettings(lab: Lab, node: NodePlan): string {
  return systemPath(lab, node, 'etc/apt/apt.conf')
}

function exists(path: string, mode: number = constants.F_OK): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
