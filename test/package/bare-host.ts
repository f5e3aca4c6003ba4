import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publicKeyOf, writeSums } from '../../package/sign.ts'

const checkout = join(import.meta.dirname, '../..')

export const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/**
 * What stands for Node in a release of the tests: it says its version, and that is all that the
 * script asks of it.
 */
const sayingVersion = (version: string) => `#!/bin/sh\necho ${version}\n`

type Release = { version?: string; key?: string | null; node?: string; bulkMegabytes?: number }

/**
 * A release as `npm run package` lays it out, with a stand-in for Node: some kilobytes, made in no
 * time.
 */
export async function makeRelease(dist: string, given: Release = {}): Promise<string> {
  const { version = '1.2.0', key = newKey(), node = sayingVersion(version), bulkMegabytes = 0 } = given
  const name = `nightshift-${version}-linux-${process.arch}`
  const folder = join(dist, 'draft', name)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  mkdirSync(join(folder, 'lib/cli'), { recursive: true })
  mkdirSync(join(folder, 'units'))
  if (node === 'sleep') cpSync('/bin/sleep', join(folder, 'bin/node'), { dereference: true })
  else writeFileSync(join(folder, 'bin/node'), node, { mode: 0o755 })
  cpSync(join(checkout, 'package/nightshift'), join(folder, 'bin/nightshift'))
  writeFileSync(join(folder, 'lib/cli/main.js'), '')
  for (const unit of ['api', 'worker', 'agent'])
    cpSync(join(checkout, `examples/nightshift-${unit}.service`), join(folder, `units/nightshift-${unit}.service`))
  if (bulkMegabytes > 0) writeFileSync(join(folder, 'bulk'), Buffer.alloc(bulkMegabytes * 1024 * 1024))
  const archive = join(dist, `${name}.tar.xz`)
  const packed = spawnSync('tar', ['-cJf', archive, '-C', join(dist, 'draft'), name], {
    env: { ...process.env, XZ_OPT: '-0' },
  })
  if (packed.status !== 0) throw new Error(packed.stderr.toString())
  const script = readFileSync(join(checkout, 'package/install.sh'), 'utf8').replaceAll('@VERSION@', version)
  writeFileSync(join(dist, 'install.sh'), script.replace('@KEY@', key === null ? '' : publicKeyOf(key)))
  await writeSums(dist, key)
  return archive
}

/**
 * Runs a script as root of a host that is this machine without Nightshift and without systemd: its
 * files are copied where they are written, and all of it is gone afterwards. Answers what was said.
 */
export function onBareHost(place: string, script: string): SpawnSyncReturns<string> {
  const begin = `set -e
mount -t tmpfs tmpfs ${place}
mkdir ${place}/upper ${place}/work ${place}/root
mount -t overlay overlay -o lowerdir=/,upperdir=${place}/upper,workdir=${place}/work ${place}/root
cd ${place}/root
mount --rbind /proc proc && mount --rbind /dev dev && mount -t tmpfs tmpfs run
rm -rf ${owned.map((path) => path.slice(1)).join(' ')}
exec chroot . sh -c "$0"
`
  return spawnSync('unshare', ['--mount', 'sh', '-c', begin, script], {
    encoding: 'utf8',
    // Only ends a hang: a script that waits for ever would hold up every test behind it.
    timeout: 120_000,
    killSignal: 'SIGKILL',
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
  })
}

/** All that the script may make. */
const owned = [
  ...[
    '/opt/nightshift',
    '/etc/nightshift',
    '/var/lib/nightshift',
    '/var/lib/nightshift-agent',
    '/usr/local/bin/nightshift',
  ],
  ...['api', 'worker', 'agent'].map((name) => `/etc/systemd/system/nightshift-${name}.service`),
]

/**
 * Shell that names what there is of Nightshift: nothing after a failure, and after a removal that
 * purges.
 */
export const leftovers = `for path in ${owned.join(' ')}; do if [ -e $path ] || [ -L $path ]; then echo "left: $path"; fi; done
for user in nightshift nightshift-agent; do if id $user >/dev/null 2>&1; then echo "left: user $user"; fi; done`
