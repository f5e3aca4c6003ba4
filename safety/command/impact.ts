import type { Risk } from '../../domain/tool.ts'
import { versions } from './grammar.ts'
import { brokers, queues } from './grammars/brokers.ts'
import { controls } from './grammars/controls.ts'
import { deployers } from './grammars/deployers.ts'
import { disks } from './grammars/disks.ts'
import { local } from './grammars/local.ts'
import { platforms } from './grammars/platforms.ts'

/**
 * The effects of commands, the mildest first. `unknown`: an unknown program, or a text that is run
 * as a program, which may do anything. `sever`: stops a host or guest, or cuts it off from network
 * or storage.
 */
export const impacts = [
  'look',
  'create',
  'change',
  'unknown',
  'install',
  'rights',
  'stop',
  'remove',
  'destroy',
  'sever',
] as const
export type Impact = (typeof impacts)[number]

/**
 * Facts about each effect: the risk, which sets the least number of people who must approve, and
 * the words on the approval card.
 */
export const impactFacts: Readonly<Record<Impact, { risk: Risk; words: string }>> = {
  look: { risk: 'none', words: 'only reads' },
  create: { risk: 'medium', words: 'adds or starts something' },
  change: { risk: 'medium', words: 'changes something' },
  unknown: { risk: 'high', words: 'may do anything, because its program is unknown' },
  install: { risk: 'high', words: 'changes installed software by scripts that run as root' },
  rights: { risk: 'high', words: 'changes who may read, write or run system files' },
  stop: { risk: 'high', words: 'stops or restarts something that is running' },
  remove: { risk: 'high', words: 'removes something' },
  destroy: { risk: 'critical', words: 'destroys something that cannot be restored' },
  sever: { risk: 'critical', words: 'stops a machine or cuts it off' },
}

export function worse(a: Impact, b: Impact): Impact {
  return impacts.indexOf(a) >= impacts.indexOf(b) ? a : b
}

/**
 * Words that decide the class of a call: the first pattern that matches anywhere after the program
 * counts. The last entry is for all other calls.
 */
type Classes = readonly [pattern: RegExp | null, impact: Impact][]

const all = (impact: Impact): Classes => [[null, impact]]
const verbs = (words: Partial<Record<Exclude<Impact, 'look'>, string>>, otherwise: Impact): Classes => [
  ...(['sever', 'destroy', 'remove', 'stop', 'install', 'create', 'change', 'unknown'] as const).flatMap(
    (impact): [RegExp, Impact][] =>
      words[impact] ? [[new RegExp(`(?:^| )(?:${words[impact].trim().split(/\s+/).join('|')})(?: |$)`), impact]] : [],
  ),
  [null, otherwise],
]

const unitVerbs = verbs(
  {
    sever: 'poweroff reboot halt kexec suspend hibernate hybrid-sleep rescue emergency isolate soft-reboot',
    stop: 'stop restart try-restart reload-or-restart try-reload-or-restart kill condrestart force-reload',
    create: 'start',
    remove: 'clean revert',
    change:
      'enable disable mask unmask reload daemon-reload daemon-reexec set-property edit link preset reset-failed set-default',
  },
  'change',
)
const containerVerbs = verbs(
  {
    destroy: 'prune volume.rm',
    remove: 'rm rmi remove delete down',
    stop: 'stop restart kill pause',
    create: 'start run create up pull build unpause exec attach',
  },
  'change',
)
const guestVerbs = verbs(
  {
    destroy:
      'destroy undefine delete-snapshot snapshot-delete delsnapshot rollback restore vol-delete pool-delete template',
    sever:
      'stop shutdown reboot reset suspend managedsave migrate save detach-disk detach-interface unlink kill poweroff',
    create: 'start create clone snapshot resume attach-disk attach-interface define unlock',
  },
  'change',
)
const orchestratorVerbs = verbs(
  {
    destroy: 'delete-pv delete.namespace delete.ns delete.pv delete.pvc delete.crd --all --prune',
    sever: 'drain cordon taint',
    remove: 'delete uninstall rollback',
    stop: 'rollout scale restart evict autoscale',
    create: 'create run apply expose install upgrade exec cp debug attach',
    change: 'edit patch label annotate set replace uncordon',
  },
  'change',
)
const packageVerbs = verbs(
  {
    remove: 'remove purge autoremove erase -r -P -e',
    install: 'install reinstall upgrade dist-upgrade full-upgrade dist-sync downgrade add -i -U -S',
  },
  'change',
)
const firewall = verbs(
  { sever: '-F -X -P -Z -D -I -A -R --flush --policy flush delete reset disable drop panic-on', create: 'add list' },
  'sever',
)
const storage = verbs(
  {
    destroy: 'destroy remove delete rm wipe format purge zap rollback labelclear erase',
    sever: 'export offline detach out stop fail',
    create: 'create add attach import snapshot online clone',
  },
  'change',
)
const database: Classes = [
  [/\b(?:drop|truncate|flushall|flushdb|shutdown|dropdatabase|purge)\b/i, 'destroy'],
  [/\b(?:delete|remove|pg_terminate_backend|kill|pg_cancel_backend|reset|del|unlink)\b/i, 'remove'],
  [null, 'change'],
]

const byProgram: ReadonlyMap<string, Classes> = new Map(
  Object.entries({
    ...named('systemctl service rc-service initctl supervisorctl sv s6-svc monit', unitVerbs),
    ...named('docker podman nerdctl docker-compose podman-compose crictl ctr', [
      [/(?:^| )(?:volume|system|image|network|builder|container) (?:rm|prune|remove)(?: |$)/, 'destroy'],
      [/(?:^| )(?:down|rm) .*(?:-v|--volumes)(?: |$)/, 'destroy'],
      ...containerVerbs,
    ]),
    ...named('virsh qm pct xl lxc lxc-stop incus VBoxManage vim-cmd prlctl', guestVerbs),
    ...named('kubectl oc helm nomad', [
      [
        /(?:^| )delete (?:\S+ )*(?:ns|namespaces?|pv|pvc|persistentvolumes?|persistentvolumeclaims?|crds?|nodes?)(?: |\/|$)/,
        'destroy',
      ],
      ...orchestratorVerbs,
    ]),
    ...named('apt apt-get dpkg yum dnf rpm zypper apk pacman snap pip pip3 npm gem brew', packageVerbs),
    ...named('iptables ip6tables nft ufw firewall-cmd ipset ebtables arptables pfctl', firewall),
    ...named('zfs zpool ceph rbd lvm vgchange mdadm multipath gluster btrfs drbdadm iscsiadm', storage),
    ...named('psql mysql mariadb mongosh mongo redis-cli sqlite3 clickhouse-client cqlsh sqlcmd rabbitmqctl', database),
    ...named('kill pkill killall skill fuser xkill', all('stop')),
    ...named('shutdown reboot poweroff halt init telinit ipmitool', all('sever')),
    ...named('ifdown ifup nmcli networkctl netplan wg-quick brctl bridge tc dhclient umount swapoff', all('sever')),
    ...named('ip', [
      [/(?:^| )(?:flush|del|delete|down|replace|change)(?: |$)/, 'sever'],
      [/(?:^| )(?:set|add)(?: |$)/, 'sever'],
      [null, 'change'],
    ]),
    ...named('rm unlink srm', [
      [/(?:^| )(?:-[a-zA-Z]*[rR][a-zA-Z]*|--recursive)(?: |$)/, 'destroy'],
      [/[*?]/, 'destroy'],
      [null, 'remove'],
    ]),
    ...named('rmdir truncate logrotate', all('remove')),
    // Classes moving a file as removal, because an overwritten or moved file is no longer in its
    // place.
    ...named('mv', [
      [/^(?:-\S+ )*(?:\/(?:tmp|var\/tmp|dev\/shm)\/[^\s.]\S* ?)+$/, 'change'],
      [null, 'remove'],
    ]),
    ...named('tee', [
      [/(?:^| )(?:-[ip]*a[ip]*|--append)(?: |$)/, 'change'],
      [/^(?:-\S+ )*(?:\/(?:tmp|var\/tmp|dev\/shm)\/[^\s.]\S* ?)*$/, 'change'],
      [null, 'remove'],
    ]),
    ...named('chmod chown chgrp chattr setfacl setcap', [
      [/(?:^| )(?:-[a-zA-Z]*R[a-zA-Z]*|--recursive)(?: |$)/, 'rights'],
      [
        /(?:^| )\/(?:etc|boot|usr|bin|sbin|lib\w*|root|dev|var\/(?:lib|spool))(?:\/| |$)|(?:^| )\/+(?: |$)|\.\./,
        'rights',
      ],
      [
        /(?:^| )(?:[0-7]?[0-7]?[0-7]?[2367]|[0-7]*[4-7][0-7]{3}|\S*[+=]\S*s\S*|(?:[ugo]*[ao][ugo]*)?[+=][rxst]*w\S*)(?: |$)/,
        'rights',
      ],
      [null, 'change'],
    ]),
    ...named('find fd', [
      [/(?:^| )(?:-delete|-exec|-execdir|-ok|-okdir|--exec|-x|-X)(?: |$)/, 'destroy'],
      [null, 'change'],
    ]),
    ...named(
      'dd mkfs mke2fs mkswap wipefs shred blkdiscard fdisk parted sfdisk sgdisk lvremove vgremove pvremove cryptsetup dropdb dropuser userdel deluser groupdel fsck e2fsck xfs_repair resize2fs lvresize lvreduce',
      all('destroy'),
    ),
    ...named('rsync', [
      [/(?:^| )--(?:delete|remove-source)\S*(?: |$)/, 'destroy'],
      [null, 'change'],
    ]),
    ...named('crontab', [
      [/(?:^| )-r(?: |$)/, 'destroy'],
      [null, 'change'],
    ]),
    ...named('git', [
      [
        /(?:^| )(?:clean|reset|filter-branch|gc|prune|reflog)(?: |$)|--force|(?:^| )-f(?: |$)|(?:^| )push .*:/,
        'destroy',
      ],
      [null, 'change'],
    ]),
    ...named('terraform tofu pulumi', [
      [/(?:^| )(?:destroy|apply|import|taint|up)(?: |$)/, 'destroy'],
      [null, 'change'],
    ]),
    ...named('touch mkdir cp ln install useradd adduser groupadd mktemp createdb mkfifo', all('create')),
    ...named(
      'sed awk gawk mawk sysctl echo printf cat sort tar gzip gunzip zip unzip patch ethtool mount swapon modprobe hostnamectl timedatectl passwd chpasswd usermod journalctl logger curl wget scp sftp nginx apachectl postfix postsuper postqueue exim',
      all('change'),
    ),
    ...named('rmmod insmod', all('stop')),
    ...named(
      'python python2 python3 perl ruby node nodejs deno bun php lua tclsh expect make ansible ansible-playbook salt salt-call puppet chef-client java go cargo',
      all('unknown'),
    ),
    ...named('sh bash dash ash zsh ksh mksh fish', [
      [/^-[a-z]*c(?: |$)|^$/, 'change'],
      [null, 'unknown'],
    ]),
    // Programs that run a text or another program. A program that the command names is classed too.
    ...named(
      'sudo doas su runuser env nice ionice timeout nohup setsid xargs parallel ssh time watch chroot nsenter unshare flock strace stdbuf taskset chrt systemd-run cd export set true false test [ : exit return wait read',
      all('change'),
    ),
  }),
)

function named(names: string, classes: Classes): Record<string, Classes> {
  return Object.fromEntries(names.split(' ').map((name) => [name, classes]))
}

/** Matches places for temporary files. */
const scratch = /^\/(?:tmp|var\/tmp|dev\/shm)\/(?!.*\.\.)/

/**
 * Returns the class of a redirection: the shell empties a file that it writes from the beginning.
 */
export function impactOfRedirection(operator: string, target: string): Impact {
  if (operator.startsWith('<') && operator !== '<>') return 'look'
  if (/^(?:\d|-)$/.test(target) || target === '/dev/null') return 'look'
  return operator.includes('>>') || operator === '<>' || scratch.test(target) ? 'change' : 'remove'
}

/**
 * Programs whose grammar lists only reads. Their other calls may remove anything from a label to a
 * cluster.
 */
const administrators = new Set(
  Object.keys({ ...brokers, ...controls, ...deployers, ...disks, ...local, ...platforms, ...queues, ...versions }),
)

/**
 * Returns the class of one command by its words. `isKnown`: a grammar knows the program. The
 * command inside a wrapper is classed too.
 */
export function impactOf(name: string, words: readonly string[], isKnown: boolean): Impact {
  const classes = byProgram.get(name) ?? (/^mkfs\./.test(name) ? all('destroy') : null)
  if (!classes) return isKnown && !administrators.has(name) ? 'change' : 'unknown'
  if (classes[0]?.[0] === null) return classes[0][1]
  const text = words.slice(1).join(' ')
  for (const entry of classes) if (entry[0] === null || entry[0].test(text)) return entry[1]
  return 'change'
}
