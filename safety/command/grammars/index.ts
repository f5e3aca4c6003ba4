import { type Grammars, versions } from '../grammar.ts'
import { brokers, queues } from './brokers.ts'
import { clusters } from './clusters.ts'
import { containers } from './containers.ts'
import { controls } from './controls.ts'
import { databases } from './databases.ts'
import { deployers, remote } from './deployers.ts'
import { ceph, disks } from './disks.ts'
import { contents, files } from './files.ts'
import { git } from './git.ts'
import { hadoop } from './hadoop.ts'
import { hardware, host } from './host.ts'
import { local, processes } from './local.ts'
import { meshes } from './meshes.ts'
import { network } from './network.ts'
import { failover } from './pacemaker.ts'
import { archives, packages, snapshots } from './packages.ts'
import { platforms } from './platforms.ts'
import { storage } from './storage.ts'
import { supercomputers } from './supercomputers.ts'
import { switches } from './switches.ts'
import { systemd } from './systemd.ts'
import { text } from './text.ts'
import { openssl, tools } from './tools.ts'

/**
 * Grammars of all programs, by base name. A call of a program without a grammar does not count as a
 * read.
 */
export const grammars: Grammars = {
  ...versions,
  ...archives,
  ...ceph,
  ...clusters,
  ...containers,
  ...contents,
  ...controls,
  ...deployers,
  ...disks,
  ...databases,
  ...failover,
  ...files,
  ...git,
  ...hadoop,
  ...hardware,
  ...host,
  ...local,
  ...meshes,
  ...network,
  ...openssl,
  ...packages,
  ...platforms,
  ...queues,
  ...processes,
  ...remote,
  ...snapshots,
  ...storage,
  ...supercomputers,
  ...switches,
  ...systemd,
  ...text,
  ...tools,
  ...brokers,
}
