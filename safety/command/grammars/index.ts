import type { Grammars } from '../grammar.ts'
import { archives } from './archives.ts'
import { brokers } from './brokers.ts'
import { ceph } from './ceph.ts'
import { clusters } from './clusters.ts'
import { containers } from './containers.ts'
import { contents } from './contents.ts'
import { controls } from './controls.ts'
import { databases } from './databases.ts'
import { deployers } from './deployers.ts'
import { disks } from './disks.ts'
import { files } from './files.ts'
import { git } from './git.ts'
import { hardware } from './hardware.ts'
import { host } from './host.ts'
import { local } from './local.ts'
import { network } from './network.ts'
import { openssl } from './openssl.ts'
import { packages } from './packages.ts'
import { platforms } from './platforms.ts'
import { processes } from './process.ts'
import { queues } from './queues.ts'
import { remote } from './remote.ts'
import { snapshots } from './snapshots.ts'
import { storage } from './storage.ts'
import { systemd } from './systemd.ts'
import { text } from './text.ts'
import { tools } from './tools.ts'
import { versions } from './versions.ts'

/** What is known of every program, by base name. What is not here is not a read. */
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
  ...files,
  ...git,
  ...hardware,
  ...host,
  ...local,
  ...network,
  ...openssl,
  ...packages,
  ...platforms,
  ...queues,
  ...processes,
  ...remote,
  ...snapshots,
  ...storage,
  ...systemd,
  ...text,
  ...tools,
  ...brokers,
}
