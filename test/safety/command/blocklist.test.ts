import { expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'

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
