# Writes curves.json: intervals, clustered standard errors and tests of curves, by R's survival. Run in this folder.
suppressMessages(library(survival))
source("json.R")
lung<-read.csv("lung.csv"); mgus<-read.csv("mgus2.csv")
kinds<-c(log="log",loglog="log-log",plain="plain",logit="logit",arcsine="arcsin")
at<-c(5,100,365,700)
ends<-function(s) list(lower=unname(s$lower),upper=unname(s$upper))
survival<-lapply(kinds,function(k) ends(summary(survfit(Surv(time,event)~1,lung,conf.type=k),times=at)))
incidence<-lapply(kinds,function(k){
  f<-survfit(Surv(time,factor(event,0:2))~1,mgus,conf.type=k); i<-findInterval(c(12,60,120,240),f$time)
  list(lower=matrix(f$lower,ncol=3)[i,2],upper=matrix(f$upper,ncol=3)[i,2])  # "arcsin" has no dimensions
})
# Clustered: weighted members of an institution, rows of one person, and competing events.
heart<-read.csv("heart.csv"); heart$weight<-1+(heart$id%%4)/2; mgus$cluster<-mgus$age%/%2; mgus$weight<-1+(mgus$male==1)/3
steps<-function(f,at){ i<-findInterval(at,f$time); list(times=at,survival=f$surv[i],survival_error=(if(f$logse) f$surv*f$std.err else f$std.err)[i],hazard=f$cumhaz[i],hazard_error=f$std.chaz[i]) }
clustered<-list(
  lung=steps(survfit(Surv(time,event)~1,lung,weights=weight,cluster=inst,robust=TRUE),at),
  heart=steps(survfit(Surv(start,stop,event)~1,heart,id=id,robust=TRUE),c(10,60,200,800)),
  heart_weighted=steps(survfit(Surv(start,stop,event)~1,heart,id=id,weights=weight,robust=TRUE),c(10,60,200,800)))
# With several states survival 3.5 leaves the clusters out, so its influence of each row is summed here.
mgus$id<-seq_len(nrow(mgus)); f<-survfit(Surv(time,factor(event,0:2))~1,mgus,weights=weight,id=id,influence=1); i<-findInterval(c(12,60,120,240),f$time)
errors<-sapply(2:3,function(k) sqrt(colSums(rowsum(mgus$weight*f$influence.pstate[,i+1,k],mgus$cluster)^2)))
clustered$mgus2<-list(times=c(12,60,120,240),incidence=t(f$pstate[i,2:3]),incidence_error=t(errors))
# Tests: survdiff, and the robust score test of coxph with weights that are not counts.
tests<-function(f) list(chisq=f$chisq,observed=if(is.matrix(f$obs)) rowSums(f$obs) else f$obs,expected=if(is.matrix(f$exp)) rowSums(f$exp) else f$exp,variance=f$var)
lung$ecog<-pmin(lung$ph.ecog,2); lung$ipw<-1+(lung$age%%7)/3
rhos<-c(zero=0,half=0.5,one=1,minus=-1)
logrank<-list(plain=lapply(rhos,function(r) tests(survdiff(Surv(time,event)~ecog,lung,rho=r))),
  strata=lapply(rhos,function(r) tests(survdiff(Surv(time,event)~ecog+strata(sex),lung,rho=r))))
robust<-list(weights=coxph(Surv(time,event)~factor(ecog),lung,weights=ipw,ties="breslow",robust=TRUE)$rscore,
  cluster=coxph(Surv(time,event)~factor(ecog),lung,weights=ipw,cluster=inst,ties="breslow")$rscore,
  strata=coxph(Surv(time,event)~factor(ecog)+strata(sex),lung,weights=ipw,cluster=inst,ties="breslow")$rscore,
  start_stop=coxph(Surv(start,stop,event)~transplant,heart,cluster=id,ties="breslow")$rscore)
out<-list(versions=list(R=R.version.string,survival=as.character(packageVersion("survival"))),
  intervals=list(times=at,survival=survival,incidence_times=c(12,60,120,240),incidence=incidence),
  clustered=clustered,logrank=logrank,robust=robust)
writeLines(json(out),"curves.json")
