/** Below the patterns above, but public: what a certificate authority publishes, and a device that holds nothing. */
export const publicPaths: readonly string[] = [
  '/dev/null',
  '/dev/stdin',
  '/etc/ssl/certs/**',
  '/etc/pki/ca-trust/**',
  '/usr/share/ca-certificates/**',
  '/usr/local/share/ca-certificates/**',
  '/usr/share/keyrings/**',
  '/etc/apt/keyrings/**',
  '/etc/apt/trusted.gpg.d/**',
  '/etc/ssl/cert.pem',
  '/etc/letsencrypt/live/*/fullchain.pem',
  '/etc/letsencrypt/live/*/chain.pem',
  '/var/log/**/private/**',
]

/** Reading one of these asks another machine, whose name stands in the path: an automounter, a network file system. */
export const fetchingPaths: readonly string[] = [
  '/net/**',
  '/afs/**',
  '/smb/**',
  '/inet/**',
  '/inet4/**',
  '/inet6/**',
  '/dev/tcp/**',
  '/dev/udp/**',
]

/**
 * Directories that may be read with all that is below: logs, and what packages install for everybody to read. Anywhere else a
 * directory may hold a file that no list names.
 */
export const openTrees: readonly string[] =
  `/var/log/** /usr/share/** /usr/lib/** /usr/include/** /usr/src/** /lib/** /lib64/** /proc/sys/** /sys/class/** /sys/block/** /sys/fs/cgroup/**
   /etc/systemd/** /etc/cron.d/** /etc/cron.daily/** /etc/cron.hourly/** /etc/cron.weekly/** /etc/cron.monthly/** /etc/logrotate.d/**
   /etc/sysctl.d/** /etc/modprobe.d/** /etc/modules-load.d/** /etc/udev/** /etc/apt/sources.list.d/** /etc/apt/apt.conf.d/**
   /etc/apt/preferences.d/** /etc/yum.repos.d/** /etc/rsyslog.d/** /etc/pam.d/** /etc/profile.d/** /etc/ld.so.conf.d/** /etc/security/limits.d/**
   /etc/tmpfiles.d/** /etc/nginx/conf.d/** /etc/nginx/sites-*/** /etc/nginx/snippets/** /etc/nginx/modules-*/** /etc/apache2/*-enabled/**
   /etc/apache2/*-available/** /etc/httpd/conf/** /etc/httpd/conf.d/** /etc/httpd/conf.modules.d/** /etc/haproxy/conf.d/** /etc/php/** /etc/init.d/** /etc/bash_completion.d/**
   /etc/logcheck/** /etc/fail2ban/** /etc/ssh/sshd_config.d/** /etc/ssh/ssh_config.d/** /run/systemd/generator*/** /boot/grub/** /boot/loader/**`.split(
    /\s+/,
  )

/** A person's home holds keys and histories, so reading all of it reads those. */
export const homes: readonly string[] = ['/root', '/home', '/home/*']

/** Reading these does not end. */
export const endlessPaths: readonly string[] = [
  '/dev/zero',
  '/dev/full',
  '/dev/random',
  '/dev/urandom',
  '/dev/hwrng',
  '/dev/tty*',
  '/dev/pts/**',
  '/dev/console',
  '/dev/kmsg',
  '/dev/ptmx',
  '/dev/input/**',
  '/proc/kmsg',
  '/sys/kernel/debug/tracing/**/trace_pipe',
  '/sys/kernel/tracing/**/trace_pipe',
]

/** Disks, partitions and volumes: writing to one destroys what is on it. */
export const diskPaths: readonly string[] = [
  '/dev/[shv]d[a-z]*',
  '/dev/xvd[a-z]*',
  '/dev/nvme[0-9]*',
  '/dev/mmcblk[0-9]*',
  '/dev/md[0-9]*',
  '/dev/md/**',
  '/dev/dm-[0-9]*',
  '/dev/mapper/**',
  '/dev/disk/**',
  '/dev/loop[0-9]*',
  '/dev/drbd[0-9]*',
  '/dev/rbd[0-9]*',
  '/dev/nbd[0-9]*',
  '/dev/zd[0-9]*',
  '/dev/zvol/**',
  '/dev/bcache[0-9]*',
  '/dev/pmem[0-9]*',
  '/dev/disk[0-9]*',
  '/dev/rdisk[0-9]*',
  '/dev/mem',
  '/dev/kmem',
  '/dev/port',
]

/** Programs that tell about a path (name, size, owner, device facts) and never print what is in it. */
export const attributesOnly: ReadonlySet<string> = new Set(
  `ls dir vdir stat find du df tree test [ readlink realpath namei basename dirname cd pwd mountpoint findmnt mount lsblk blkid
   blockdev smartctl hdparm nvme fdisk sfdisk parted mdadm pvs vgs lvs pvdisplay vgdisplay lvdisplay pvscan vgscan lvscan
   swapon tune2fs dumpe2fs xfs_info btrfs udevadm fuser lsof getfacl lsattr dmsetup losetup cryptsetup multipath sg_inq quota
   lvmdiskscan zpool zfs xfs_quota e2label findfs which whereis type command locate plocate`.split(/\s+/),
)
