import type { Grammars } from '../grammar.ts'
import { archives } from './archives.ts'
import { ceph } from './ceph.ts'
import { clusters } from './clusters.ts'
import { containers } from './containers.ts'
import { contents } from './contents.ts'
import { databases } from './databases.ts'
import { files } from './files.ts'
import { git } from './git.ts'
import { hardware } from './hardware.ts'
import { host } from './host.ts'
import { network } from './network.ts'
import { openssl } from './openssl.ts'
import { packages } from './packages.ts'
import { processes } from './process.ts'
import { remote } from './remote.ts'
import { snapshots } from './snapshots.ts'
import { storage } from './storage.ts'
import { systemd } from './systemd.ts'
import { text } from './text.ts'
import { tools } from './tools.ts'

/** What is known of every program, by base name. What is not here is not a read. */
export const grammars: Grammars = {
  ...archives,
  ...ceph,
  ...clusters,
  ...containers,
  ...contents,
  ...databases,
  ...files,
  ...git,
  ...hardware,
  ...host,
  ...network,
  ...openssl,
  ...packages,
  ...processes,
  ...remote,
  ...snapshots,
  ...storage,
  ...systemd,
  ...text,
  ...tools,
}
