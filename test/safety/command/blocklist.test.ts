import { describe, expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'

describe('blocklist', () => {
  const verdict = (text: string) => judgeCommand(text, { knownHosts: new Set() }).verdict

  test.each(
    `reboot
/sbin/shutdown -h now
systemctl --no-block poweroff
systemctl isolate rescue.target
systemctl start systemd-poweroff.service
systemctl start systemd-reboot
systemctl restart poweroff.target
systemctl start emergency.service
systemctl start ctrl-alt-del.target
telinit 6
echo c | tee /proc/sysrq-trigger
dd if=/dev/zero of=/dev/sda bs=1M
mkfs.ext4 -F /dev/nvme0n1p1
wipefs -a /dev/sdb
shred -n 1 /dev/disk/by-id/x
sgdisk --zap-all /dev/sda
nvme format /dev/nvme0
cryptsetup luksFormat /dev/sdb
zpool destroy tank
cat x > /dev/sda
cp image.iso /dev/sdb
rm -rf /
rm -r -f "/etc"
rm -rf /usr/ /tmp/x
rm -rf /./var/../usr
rm -rf /*
rm -rf /e*
rm -rf /{etc,usr}
rm -rf ~
rm -rf $HOME
rm -rf "\${HOME}"/*
rm -rf ..
rm --recursive --no-preserve-root /
cd / && rm -rf *
chmod -R 777 /
chown -R nobody:nogroup /usr
find / -delete
find /etc -type f -exec rm -f {} +
mv /etc /tmp/x
rsync -a --delete /tmp/empty/ /
> /etc/passwd
: >| /etc/shadow
truncate -s 0 /etc/fstab
cp /dev/null /etc/passwd
rm -f /etc/passwd
userdel -r root
kill -9 -1
kill -9 1
:(){ :|:& };:
bomb() { bomb | bomb & }; bomb
python3 -c "import os; os.system('rm -rf /')"
python3 -c "import subprocess; subprocess.run(['rm', '-rf', '/etc'])"
perl -e 'exec "reboot"'
docker run -v /:/host alpine rm -rf /host/etc
docker run --privileged alpine sh -c 'reboot'
kubectl debug node/n1 -- chroot /host reboot
ssh db1 -p 22 'sudo reboot'
echo 'rm -rf /' | bash
echo / | xargs rm -rf
parallel rm -rf ::: /
bash <<< reboot
trap reboot EXIT
echo \`reboot\`
if true; then reboot; fi`.split('\n'),
  )('is refused, even with an approval: %s', (text) => {
    expect(verdict(text)).toBe('refuse')
  })

  test.each(
    `rm -rf /tmp/x
rm -rf ./build node_modules
rm -rf ../lib
rm -rf /home/bob/project
rm -rf /var/log/old
find . -name '*.pyc' -delete
find /var/log -name '*.gz' -mtime +30 -delete
chown -R www-data /srv/app
mkfs.ext4 /tmp/disk.img
dd if=/dev/sda of=/tmp/image
wipefs /dev/sda
zfs destroy tank/data@monday
kill 1234
kill -1 1234
systemctl start nginx
echo x > /etc/motd
iptables -F
git commit -m 'rm -rf /'`.split('\n'),
  )('is asked about, never refused: %s', (text) => {
    expect(verdict(text)).toBe('ask')
  })

  test.each(
    `echo 'rm -rf /'
grep -r "shutdown -h now" /var/log
last reboot
ls reboot
ls '$(reboot)'
wc -l /sbin/reboot
ps aux | grep mkfs`.split('\n'),
  )('only mentions such a command, and runs: %s', (text) => {
    expect(verdict(text)).toBe('run')
  })
})

describe('blocklist edges', () => {
  // Both sides of each rule of the hard list: the word that decided, or null where a person may at least be asked.

  test.each([
    ['reboot', 'reboot'],
    ['reboot --help', null],
    ['reboot --version', null],
    ['shutdown -h now', 'shutdown'],
    ['shutdown -c', null],
    ['\\reboot', 'reboot'],
    ['/???/r?boot', 'reboot'],
    ['r?bo*', 'reboot'],
    ['*', null],
    ['r*', null],
    ['x?boot', null],
    ['init 0', '0'],
    ['init 3', null],
    ['init', null],
    ['telinit 6', '6'],
    ['kexec -e', '-e'],
    ['kexec -l x', null],
    ['kexec --exec', '-e'],
    ['systemctl', null],
    ['systemctl reboot', 'reboot'],
    ['systemctl isolate rescue.target', 'rescue.target'],
    ['systemctl start poweroff.target', 'poweroff.target'],
    ['systemctl start nginx', null],
    ['systemctl default', null],
    ['systemctl poweroff', 'poweroff'],
    ['systemctl exit', null],
    ['loginctl reboot', 'reboot'],
    ['loginctl list', null],
    ['ipmitool chassis power off', 'power'],
    ['ipmitool -H x power cycle', 'power'],
    ['ipmitool power status', null],
    ['ipmitool power offx', null],
    ['mkfs /dev/sda1', '/dev/sda1'],
    ['mkfs.ext4 /dev/sda1', '/dev/sda1'],
    ['mkfs.ext4 image.img', null],
    ['xmkfs.ext4 /dev/sda1', null],
    ['mkfs.a-b /dev/sda1', null],
    ['badblocks -w /dev/sda', '/dev/sda'],
    ['badblocks -n /dev/sda', null],
    ['wipefs -a /dev/sda', '/dev/sda'],
    ['wipefs --all /dev/sda', '/dev/sda'],
    ['wipefs -an /dev/sda', null],
    ['wipefs -a --no-act /dev/sda', null],
    ['wipefs /dev/sda', null],
    ['hdparm --security-erase x /dev/sda', '--security-erase'],
    ['hdparm --security-erase=x /dev/sda', '--security-erase=x'],
    ['hdparm -I /dev/sda', null],
    ['hdparm x--security-erase= /dev/sda', null],
    ['nvme format /dev/nvme0', 'format'],
    ['nvme list', null],
    ['sgdisk -Z /dev/sda', '-Z'],
    ['sfdisk --delete /dev/sda', '--delete'],
    ['parted /dev/sda mklabel gpt', 'mklabel'],
    ['parted /dev/sda print', null],
    ['parted /dev/sda xmkpart', null],
    ['parted /dev/sda rmx', null],
    ['cryptsetup luksErase /dev/sda', 'luksErase'],
    ['cryptsetup status x', null],
    ['mdadm --zero-superblock /dev/sda', '--zero-superblock'],
    ['pvremove /dev/sda', '/dev/sda'],
    ['vgremove data', 'data'],
    ['vgremove', null],
    ['zpool destroy tank', 'destroy'],
    ['zpool status', null],
    ['zfs destroy tank/x', 'destroy'],
    ['zfs destroy tank/x@monday', null],
    ['zfs list', null],
    ['dd if=x of=/dev/sda', '/dev/sda'],
    ['dd if=/dev/sda of=x', null],
    ['dd if=x', null],
    ['dd if=x of=/etc/passwd', '/etc/passwd'],
    ['rm -rf /', '/'],
    ['rm -rf /*', '/*'],
    ['rm -rf /etc/*', '/etc/*'],
    ['rm -rf /etc/.*', '/etc/.*'],
    ['rm -rf /etc/.[!.]*', '/etc/.[!.]*'],
    ['rm -rf /etc/{*,.*}', '/etc/*'],
    ['rm -rf /etc/*.*', '/etc/*.*'],
    ['rm -rf /*/x', '/*/x'],
    ['rm -rf /srv/*/x', null],
    ['rm -rf /etc/*.log', null],
    ['rm -rf *', null],
    ['rm -rf ./*', null],
    ['rm -rf .', null],
    ['rm -rf ..', '..'],
    ['rm -rf ../..', '../..'],
    ['rm -rf ../../x', null],
    ['rm -rf ../x', null],
    ['rm -rf x..', null],
    ['rm -rf a/..', null],
    ['rm -rf /tmp/x', null],
    ['rm -rf /srv', '/srv'],
    ['rm -rf /home/bob', '/home/bob'],
    ['rm -rf /opt', '/opt'],
    ['rm /etc', null],
    ['rm -r /etc', '/etc'],
    ['rm -R /etc', '/etc'],
    ['rm --recursive /etc', '/etc'],
    ['rm --recursive=x /etc', '/etc'],
    ['rm --force /etc', null],
    ['rm -f /etc/passwd', '/etc/passwd'],
    ['rm -f x --no-preserve-root', '--no-preserve-root'],
    ['rm x--recursive /etc', null],
    ['rm -- -r /etc', null],
    ['rm -r -- /etc', '/etc'],
    ['rm -r -- --x /etc', '/etc'],
    ['rm - /etc', null],
    ['rm /boot/vmlinuz', '/boot/vmlinuz'],
    ['rm -r /boot/vmlinuz', '/boot/vmlinuz'],
    ['rm /etc/passwd', '/etc/passwd'],
    ['rm /etc/sudoers.d/x', '/etc/sudoers.d/x'],
    ['rm -f ../etc/passwd', null],
    ['unlink /etc/passwd', '/etc/passwd'],
    ['srm -r /etc', '/etc'],
    ['cd /; rm -rf etc', 'etc'],
    ['cd /; rm -rf *', '*'],
    ['cd /srv/x; rm -rf ../../etc', '../../etc'],
    ['cd /srv/x; rm -rf ../y', null],
    ['cd /etc; rm -rf ../srv/app', null],
    ['cd /usr/x; rm -rf ../bin', '../bin'],
    ['rm -rf /{etc,usr}', '/etc'],
    ['rm -rf /{srv/x,etc}', '/etc'],
    ['rm -rf {/etc,/srv/x}/ssh', '/etc/ssh'],
    ['rm -rf "/{etc,usr}"', null],
    ['rm -rf /x{a,b}{c,d}', null],
    ['{rm,-rf,/}', '/'],
    ['chmod -R 777 /', '/'],
    ['chmod -R 777 /srv', null],
    ['chmod --recursive 777 /etc', '/etc'],
    ['chmod 777 /etc', null],
    ['chown -R bob /usr', '/usr'],
    ['chattr -R +i /etc', '/etc'],
    ['setfacl -R -m x /etc', '/etc'],
    ['find / -delete', '/'],
    ['find /etc -delete', '/etc'],
    ['find /etc -name x -delete', null],
    ['find /srv -delete', '/srv'],
    ['find / -exec rm {} ;', '/'],
    ['find / -exec rm {} \\;', '/'],
    ['find / -exec /bin/rm -rf {} +', '/'],
    ['find / -execdir shred {} \\;', '/'],
    ['find / -ok unlink {} \\;', '/'],
    ['find / -exec ls {} \\;', null],
    ['find / -exec rmdir {} \\;', null],
    ['find / -exec a b c d e rm {} \\;', null],
    ['find / -exec a b c d e f rm {} \\;', null],
    ['find -L / -delete', '/'],
    ['find -x / -delete', '/'],
    ['find ( -delete )', null],
    ['find / -mtime +5 -delete', null],
    ['find /tmp/x -delete', null],
    ['find -delete', null],
    ['find / x-delete', null],
    ['find / x-exec rm', null],
    ['find / -execx rm', null],
    ['cp x /dev/sda', '/dev/sda'],
    ['cp /dev/null /etc/passwd', '/etc/passwd'],
    ['cp x /etc/passwd', null],
    ['cp /dev/null x', null],
    ['cp /dev/sda', null],
    ['cp /dev/sda x', null],
    ['install x /dev/sda', '/dev/sda'],
    ['ln x /dev/sda', '/dev/sda'],
    ['mv /etc /x', '/etc'],
    ['mv /srv /x', null],
    ['mv x /etc', null],
    ['mv -t /x /etc', '/etc'],
    ['mv x /dev/sda', '/dev/sda'],
    ['mv /usr/bin /x', '/usr/bin'],
    ['rsync -a --delete x /etc', '/etc'],
    ['rsync -a x /etc', null],
    ['rsync -a --del x/ /', '/'],
    ['rsync --remove-source-files x /etc', '/etc'],
    ['rsync --delete /etc x', null],
    ['rsync --deletx x /srv', null],
    ['rsync --x--delete x /etc', null],
    ['tar cf x --remove-files /etc', '/etc'],
    ['tar cf x /etc', null],
    ['tee /etc/passwd', '/etc/passwd'],
    ['tee -a /etc/passwd', null],
    ['tee -a /dev/sda', '/dev/sda'],
    ['tee --append /proc/sysrq-trigger', '/proc/sysrq-trigger'],
    ['tee /proc/sysrq-trigger', '/proc/sysrq-trigger'],
    ['tee x', null],
    ['truncate -s 0 /etc/passwd', '/etc/passwd'],
    ['truncate -s 0 x', null],
    ['userdel root', 'root'],
    ['userdel bob', null],
    ['userdel -r root', 'root'],
    ['userdel root bob', null],
    ['deluser root', 'root'],
    ['deluser bob root', null],
    ['kill 1', '1'],
    ['kill -9 1', '1'],
    ['kill -9 -1', '-1'],
    ['kill -1 5', null],
    ['kill -s 1 5', null],
    ['kill -s KILL 1', '1'],
    ['kill -n 9 1', '1'],
    ['kill --signal 9 1', '1'],
    ['kill -0 1', null],
    ['kill -l 1', null],
    ['kill -L 1', null],
    ['kill 10 1', '1'],
    ['kill', null],
    ['killall init', 'init'],
    ['killall systemd', 'systemd'],
    ['killall xinit', null],
    ['killall initx', null],
    ['pkill init', 'init'],
    ['pkill ^init$', '^init$'],
    ['pkill xsystemd', null],
    ['pkill systemdx', null],
    ['echo x > /dev/sda', '/dev/sda'],
    ['echo x >> /dev/sda', '/dev/sda'],
    ['echo x > /etc/passwd', '/etc/passwd'],
    ['echo x >> /etc/passwd', null],
    ['echo x &> /etc/passwd', '/etc/passwd'],
    ['echo x &>> /etc/passwd', null],
    ['echo x >| /etc/passwd', '/etc/passwd'],
    ['echo b > /proc/sysrq-trigger', '/proc/sysrq-trigger'],
    ['echo b >> /proc/sysrq-trigger', '/proc/sysrq-trigger'],
    ['cat < /dev/sda', null],
    ['cat <> /etc/passwd', null],
    ['cat <> /dev/sda', '/dev/sda'],
    ['echo x > /srv/x', null],
    ['cd /etc; echo x > passwd', 'passwd'],
  ])('%s is never run for the sake of %s', (text, token) => {
    const { code, verdict, token: decided } = judgeCommand(text, { knownHosts: new Set() })
    expect(code === 'FORBIDDEN' ? decided : null).toBe(token)
    expect(verdict === 'refuse').toBe(token !== null)
  })
})
