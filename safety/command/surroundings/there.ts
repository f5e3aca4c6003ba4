/**
 * Environments for programs in a container or on another host, where a home cannot be checked
 * before the run and only the text's own environment applies. Code puts `env NAME=value` before
 * these programs, so that they obey only the administrator there.
 */

/**
 * A home that is not a directory, so that it holds no files. These programs find their home by this
 * variable.
 */
const noHome = { HOME: '/dev/null', XDG_CONFIG_HOME: '/dev/null' } as const

const rows: readonly [names: string, environment: Readonly<Record<string, string>>][] = [
  // Names the settings file, so that ceph does not read one in the current directory: it uses only
  // the first file that it finds.
  ['ceph rados rbd radosgw-admin', { ...noHome, CEPH_CONF: '/etc/ceph/ceph.conf' }],
  ['cilium cilium-dbg hubble nodetool cqlsh', noHome],
  // Ignores vault's settings; the user's token is still used.
  ['vault', { VAULT_CONFIG_PATH: '/dev/null' }],
  ['psql', { PSQLRC: '/dev/null', PSQL_PAGER: '', PSQL_HISTORY: '/dev/null' }],
  ['redis-cli', { REDISCLI_RCFILE: '/dev/null', REDISCLI_HISTFILE: '/dev/null' }],
]

export const setThere: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map(
  rows.flatMap(([names, environment]) => names.split(' ').map((name) => [name, environment] as const)),
)
