/**
 * In a container or on another host nobody can look at a home first, and only the text's own
 * environment gets there. Code puts `env NAME=value` before these programs: then they obey only the
 * administrator there.
 */

/**
 * No directory: nothing can be in it, and nobody can make it one. These programs find their home by
 * this variable.
 */
const noHome = { HOME: '/dev/null', XDG_CONFIG_HOME: '/dev/null' } as const

const rows: readonly [names: string, environment: Readonly<Record<string, string>>][] = [
  // Also what would be in the directory: the first place of the search alone.
  ['ceph rados rbd radosgw-admin', { ...noHome, CEPH_CONF: '/etc/ceph/ceph.conf' }],
  ['cilium cilium-dbg hubble nodetool cqlsh', noHome],
  // The token of the user stays theirs.
  ['vault', { VAULT_CONFIG_PATH: '/dev/null' }],
  ['psql', { PSQLRC: '/dev/null', PSQL_PAGER: '', PSQL_HISTORY: '/dev/null' }],
  ['redis-cli', { REDISCLI_RCFILE: '/dev/null', REDISCLI_HISTFILE: '/dev/null' }],
]

export const setThere: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map(
  rows.flatMap(([names, environment]) => names.split(' ').map((name) => [name, environment] as const)),
)
