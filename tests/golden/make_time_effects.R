# Effects that are functions of time, by coxph with tt(): writes time_effects.json.
# Rscript make_time_effects.R, in this folder.
source("json.R")
suppressMessages(library(survival))
exact<-coxph.control(eps=1e-12,iter.max=50)
lung<-read.csv("lung.csv")
lung<-lung[complete.cases(lung[,c("time","event","age","sex","ph.ecog")]),]
lung$w<-rep(1:3,length.out=nrow(lung)); lung$o<-0.1*lung$ph.ecog
fit<-function(f) list(coef=unname(coef(f)),variance=unname(f$var),naive=unname(if(is.null(f$naive.var)) f$var else f$naive.var),loglik=f$loglik)
logs<-function(x,t,...) x*log(t)
both<-list(function(x,t,...) x*log(t),function(x,t,...) x*(t>365))
out<-list(versions=list(R=R.version.string,survival=as.character(packageVersion("survival"))))
for(ties in c("breslow","efron")) out[[ties]]<-list(
  log=fit(coxph(Surv(time,event==1)~age+sex+tt(age),lung,ties=ties,tt=logs,control=exact)),
  two=fit(coxph(Surv(time,event==1)~age+sex+ph.ecog+tt(age)+tt(sex),lung,ties=ties,tt=both,control=exact)),
  weighted=fit(coxph(Surv(time,event==1)~age+sex+offset(o)+tt(age),lung,ties=ties,weights=w,tt=logs,control=exact)),
  strata=fit(coxph(Surv(time,event==1)~age+ph.ecog+strata(sex)+tt(age),lung,ties=ties,tt=logs,control=exact)),
  cluster=fit(coxph(Surv(time,event==1)~age+sex+tt(age),lung,ties=ties,tt=logs,cluster=inst,control=exact)))
heart<-read.csv("heart.csv")
for(ties in c("breslow","efron"))
  out[[ties]]$late<-fit(coxph(Surv(start,stop,event)~age+surgery+tt(age),heart,ties=ties,tt=function(x,t,...) x*sqrt(t),control=exact))
writeLines(json(out),"time_effects.json")
