import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { imageFiles } from './layout.ts'
import { clusterProgram } from './programs.ts'
import { shopProgram } from './shop.ts'

/**
 * Makes the cluster's images as archives for containerd, without a download. An image is one layer
 * with Debian's static busybox and the shop's program.
 */
export function makeImages(directory: string): void {
  const at = (...names: string[]) => join(directory, ...names)
  for (const name of ['bin', 'etc', 'tmp', 'www']) mkdirSync(at('root', name), { recursive: true })
  const busybox = clusterProgram('busybox')
  copyFileSync(busybox, at('root/bin/busybox'))
  const names = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  for (const name of names) if (name !== 'busybox') symlinkSync('busybox', at('root/bin', name))
  writeFileSync(at('root/etc/passwd'), 'root:x:0:0:root:/:/bin/sh\n')
  writeFileSync(at('root/www/healthz'), 'ok\n')
  writeFileSync(at('root/bin/shop'), shopProgram, { mode: 0o755 })
  const tar = (folder: string, archive: string, entries: string[]) =>
    execFileSync('tar', ['-C', at(folder), '--owner=0', '--group=0', '-cf', at(archive), ...entries])
  tar('root', 'layer.tar', ['.'])
  const layer = createHash('sha256')
    .update(readFileSync(at('layer.tar')))
    .digest('hex')
  for (const file of imageFiles) {
    const [name, version] = file.replace('.tar', '').split('-')
    // Starts a shell that waits, as a pod's pause container does, and that reaps the pod's ended
    // processes.
    const entrypoint =
      name === 'pause' ? ['/bin/sh', '-c', 'trap "exit 0" TERM; sleep 2147483647 & wait'] : ['/bin/shop']
    const config = {
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Entrypoint: entrypoint, Env: ['PATH=/bin', `RELEASE=${version}`] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
      history: [{ created: '2026-01-01T00:00:00Z' }],
    }
    writeFileSync(at('config.json'), JSON.stringify(config))
    writeFileSync(
      at('manifest.json'),
      JSON.stringify([{ Config: 'config.json', RepoTags: [`lab.local/${name}:${version}`], Layers: ['layer.tar'] }]),
    )
    tar('.', file, ['config.json', 'manifest.json', 'layer.tar'])
  }
}
